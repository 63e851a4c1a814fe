"""The demo's figures and pictures as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from quadmatch.files import write_file
from quadmatch.models.load import DEFAULT

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --strong: #0b7285; --right: #1b9e77; --wrong: #d7263d; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 84rem; margin: 2.5rem auto; padding: 0 1.25rem; }
body > p, body > table, body > pre { max-width: 50rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .3rem; } h2 { margin-top: 2.6rem; font-size: 1.2rem; }
table { border-collapse: collapse; width: 100%; } td { padding: .45rem 0; vertical-align: top; }
tr + tr td { border-top: 1px solid var(--line); }
td:last-child { text-align: right; white-space: nowrap; padding-left: 1rem; }
.bar { background: var(--soft); border-radius: 3px; height: .6rem; margin-top: .2rem; }
.bar i { display: block; background: var(--strong); border-radius: 3px; height: 100%; }
.key { display: inline-block; width: 1.6rem; height: .25rem; vertical-align: middle; margin: 0 .3rem; }
figure { margin: 0 0 1.6rem; } figure img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
pre { background: var(--soft); padding: 1rem; border-radius: 6px; overflow-x: auto; }
.grid { display: grid; gap: 0 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
"""

BOTH = (
    "<p>Without the constraint the default model also does nothing else with edges and neighbours. "
    "So the difference is not the constraint's alone: docs/models.md has more.</p>"
)
"""What is true of the default model alone."""
NEXT = """\
quadmatch match a.jpg b.jpg --points-a a.json --points-b b.json --draw matches.png
quadmatch match a.jpg b.jpg --detect 40 --draw matches.png
quadmatch serve        # click points on a page, drag, match, download"""


def write_page(out: Path, photographs: Mapping[str, Any], graphs: Sequence[Mapping[str, Any]]) -> Path:
    """Write `index.html` beside the pictures."""
    found = photographs["detected"]
    names = dict.fromkeys(shown["photograph"] for shown in photographs["pictures"])
    parts = [
        "<h1>Which point is which?</h1>",
        f"<p>{photographs['pairs']} pairs of photographs, warped and relit at random, with "
        f"{photographs['points']} points whose partners are known. "
        f"Model: <b>{escape(photographs['model'])}</b>.</p>",
        _tabulate(photographs["right"]),
        *([BOTH] if photographs["model"] == DEFAULT else []),
        f"<p>With points that are detected in each picture instead of given: precision "
        f"<b>{found['precision']:.1f} %</b>, recall <b>{found['recall']:.1f} %</b> of the {found['true']} points "
        "that both detections found.</p>",
        "<p>Below is one pair of each photograph: the one in which the constraint changes most, for better or worse. "
        f"The figures above are of all {photographs['pairs']}. Lines that are right are green "
        '<i class="key" style="background:var(--right)"></i>, wrong ones red '
        '<i class="key" style="background:var(--wrong)"></i>. A click opens a picture in full size.</p>',
    ]
    for name in names:
        drawn = (one for one in photographs["pictures"] if one["photograph"] == name)
        parts += [f"<h2>{escape(_title(name))}</h2>", '<div class="grid">', *map(_picture, drawn), "</div>"]
    parts += ["<h2>Graphs without any picture</h2>", '<div class="grid">', *map(_picture, graphs), "</div>"]
    parts += ["<h2>What to try next</h2>", f"<pre>{escape(NEXT)}</pre>"]
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>quadmatch demo</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style><body>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )
    return write_file(out / "index.html", page.encode())


def _title(name: str) -> str:
    """What a photograph's file is called in words: motorcycle_left is a motorcycle."""
    return name.removesuffix("_left").replace("_", " ").capitalize()


def _tabulate(right: Mapping[str, float]) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}<div class="bar"><i style="width:{share:.1f}%"></i></div></td>'
        f"<td>{share:.1f} % right</td></tr>"
        for name, share in right.items()
    )
    return f"<table>{rows}</table>"


def _picture(shown: Mapping[str, Any]) -> str:
    caption = f"{shown['way']}: {shown['right']} of {shown['points']} right"
    return (
        f'<figure><a href="{escape(shown["file"])}"><img src="{escape(shown["file"])}" alt="{escape(caption)}"></a>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
