// Runs before the page is drawn, so that a chosen theme does not flash.
"use strict";
(() => {
  const root = document.documentElement;
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* storage is switched off */ }
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* lasts for this visit */ }
      dispatchEvent(new Event("themechange"));
    });
  });
})();
