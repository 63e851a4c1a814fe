// Search without a server. A browser refuses `new Worker` to a page that was opened from disk. There, and only
// there, this takes its place: the worker's script runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      script.src = new URL(url, location.href);
      this.loaded = new Promise((done, failed) => {
        script.onload = done;
        script.onerror = () => failed(new Error(`cannot load ${url}`));
      });
      inner.document.body.append(script);
      this.inner = inner;
    }

    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
  window.Worker = window.IFrameWorker;
}
