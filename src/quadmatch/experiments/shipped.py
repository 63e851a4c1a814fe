"""Experiments that come with the package, by name; nothing heavy is imported to list them."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def list_experiments() -> list[str]:
    """Names of the experiments that are shipped."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def describe_experiments() -> dict[str, str]:
    """What each of them is: the first line of its file."""
    texts = {name: (FOLDER / f"{name}.toml").read_text(encoding="utf-8") for name in list_experiments()}
    return {name: text.partition("\n")[0].lstrip("# ").rstrip(" .;:,") for name, text in texts.items()}


def locate_experiment(path: Path, shipped: Path | None = None) -> Path:
    """The file that is meant: this one or, where there is none, the shipped one of the name `shipped`."""
    name = (shipped or path).name.removesuffix(".toml")
    if path.is_file():
        return path
    if name not in list_experiments():
        known = ", ".join(list_experiments())
        raise FileNotFoundError(f"there is no file {path} and no experiment {name!r}; shipped are {known}")
    return FOLDER / f"{name}.toml"
