"""A page as a list of blocks, written twice: as Markdown, and as one HTML file that needs nothing else.

Text is the little Markdown that both understand: `code`, *emphasis*, **strong**, [text](address). Cells may hold several
lines. No block knows what it is about: the content is `rlstate.paper.page`'s.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Heading:
    """Of level 1 there is one, the title. Headings of level 2 are in the table of contents."""

    level: int
    text: str

    @property
    def anchor(self) -> str:
        return re.sub(r"[^\w]+", "-", self.text.lower()).strip("-")


@dataclass(frozen=True)
class Text:
    """A paragraph; `style` "note" is small print."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Items:
    """A list; `style` as of `Text`."""

    items: tuple[str, ...]
    style: str = ""


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Grid:
    """A table. `style` is its class in HTML: "wide" tables have long texts and become blocks on a narrow screen; "runs"
    tables have many short columns, and there every line becomes a block in which each figure has its heading before it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    style: str = ""


@dataclass(frozen=True)
class Drawing:
    """A figure, drawn as one `<svg>` element; `key` names its file."""

    key: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Fold:
    """What is long and seldom read: closed in HTML until asked for."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Written:
    """Markdown that somebody wrote. In HTML: headings, paragraphs, lists, tables and code."""

    text: str


Block = Heading | Text | Items | Code | Grid | Drawing | Fold | Written


# --- Markdown -----------------------------------------------------------------------------------------------------


def markdown(blocks: Iterable[Block], figures: str = "figures") -> str:
    """The page; figures are links to `<figures>/<key>.svg`."""
    return "\n\n".join(_markdown(block, figures) for block in blocks) + "\n"


def _markdown(block: Block, figures: str) -> str:
    match block:
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Items(items):
            return "\n".join(f"* {item}" for item in items)
        case Code(text):
            return f"```bash\n{text}\n```"
        case Grid(columns, rows):
            lines = [columns, ["---"] * len(columns), *rows]
            return "\n".join("| " + " | ".join(_markdown_cell(cell) for cell in line) + " |" for line in lines)
        case Drawing(key, title, caption):
            return f"![{title}]({figures}/{key}.svg)\n\n*{title}.* {caption}"
        case Fold(title, inner):
            return f"<details><summary>{title}</summary>\n\n{markdown(inner, figures).strip()}\n\n</details>"
        case Written(text):
            return text.strip()


def _markdown_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


# --- HTML ---------------------------------------------------------------------------------------------------------


def page_html(blocks: Sequence[Block]) -> str:
    """The page as one file: style and figures are in it, nothing is fetched."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    head, body = blocks[:1], blocks[1:]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"/>\n<title>{html.escape(title)}</title>\n'
        f"<style>{_CSS}</style>\n</head>\n<body>\n{_html(head[0])}\n{_contents(body)}\n<main>\n"
        + "\n".join(map(_html, body))
        + "\n</main>\n</body>\n</html>\n"
    )


def _contents(blocks: Sequence[Block]) -> str:
    entries = [block for block in blocks if isinstance(block, Heading) and block.level == 2]
    links = "\n".join(f'<li><a href="#{entry.anchor}">{inline(entry.text)}</a></li>' for entry in entries)
    return f'<nav aria-label="contents"><ul>\n{links}\n</ul></nav>'


def _html(block: Block) -> str:
    match block:
        case Heading(level, text):
            return f'<h{level} id="{block.anchor}">{inline(text)}</h{level}>'
        case Text(text, style):
            return f"<p{_class(style)}>{inline(text)}</p>"
        case Items(items, style):
            return f"<ul{_class(style)}>\n" + "\n".join(_item(item) for item in items) + "\n</ul>"
        case Code(text):
            return f"<pre><code>{html.escape(text)}</code></pre>"
        case Grid():
            return _grid(block)
        case Drawing(key, title, caption, svg):
            drawn = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)
            return (
                f'<figure id="{key}"><div class="scroll">{drawn.strip()}</div>\n'
                f"<figcaption><b>{inline(title)}.</b> {inline(caption)}</figcaption></figure>"
            )
        case Fold(title, inner):
            return f"<details><summary>{inline(title)}</summary>\n" + "\n".join(map(_html, inner)) + "\n</details>"
        case Written(text):
            return written(text)


def _class(style: str) -> str:
    return f' class="{style}"' if style else ""


def _item(text: str) -> str:
    """A mark at the beginning stands in place of the bullet."""
    if not _mark(text) or text[0] == "*":
        return f"<li>{inline(text)}</li>"
    return f'<li class="marked"><b class="{_mark(text)}">{text[0]}</b>{inline(text[1:])}</li>'


def _grid(grid: Grid) -> str:
    head = "".join(f'<th scope="col">{inline(column)}</th>' for column in grid.columns)
    lines = [
        "<tr>"
        + "".join(f'<td data-label="{html.escape(name)}">{_cell(cell)}</td>' for name, cell in zip(grid.columns, row))
        + "</tr>"
        for row in grid.rows
    ]
    table = "\n".join([f"<thead><tr>{head}</tr></thead>", "<tbody>", *lines, "</tbody>"])
    return f'<div class="scroll"><table{_class(grid.style)}>{table}</table></div>'


_WORDS = {
    "reproduced": "good", "partly": "fair", "not": "bad", "missing": "none",
    "solved": "good", "planning gap": "plan", "perception gap": "bad", "undefined": "none",
}  # fmt: skip
_SEEDS = re.compile(r"(?<=\S) \(((?:[-−+]?\d*\.\d+|–)(?: (?:[-−+]?\d*\.\d+|–))*)\)$")


_WHOLE = re.compile(r"\S+ ±\S+|\d+/\d+ = \S+ \[\S+ \S+\]")  # what no line break should part


def _cell(text: str) -> str:
    """A verdict is coloured; the seeds behind a mean stand below it, small; lines with a mark, and asides, are told apart."""
    bare = text.strip("*✓◐✗– ").replace("_", " ")
    word = next((word for word in _WORDS if bare == word or bare.startswith((f"{word} (", f"{word};"))), None)
    if word is not None:
        return f'<span class="word {_WORDS[word]}">{html.escape(word)}</span>{inline(bare.removeprefix(word))}'
    if "\n" in text or _mark(text):
        return "".join(f'<div class="{_mark(line) or "line"}">{inline(line)}</div>' for line in text.split("\n"))
    seeds = _SEEDS.search(text)
    if seeds is None:
        return f'<span class="mean">{html.escape(text)}</span>' if _WHOLE.fullmatch(text) else inline(text)
    return f'<span class="mean">{inline(text[: seeds.start()])}</span><small>{html.escape(seeds[1])}</small>'


def _mark(line: str) -> str:
    """The style of a line that begins with a mark or with an emphasized word and a colon; otherwise ""."""
    if re.match(r"\*[\w ]+:\*", line):
        return "aside"
    return _MARKS.get(line[:1], "") if line[1:2] == " " else ""


_MARKS = {"✓": "held", "◐": "half", "✗": "failed", "?": "open", "–": "open"}
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^\s*](?:[^*]*[^\s*])?)\*|\[(?P<text>[^\]]+)\]\((?P<to>[^)\s]+)\)"
)


def inline(text: str) -> str:
    """The little Markdown of a line, as HTML; everything else is escaped."""
    pieces, last = [], 0
    for found in _INLINE.finditer(text):
        pieces.append(html.escape(text[last : found.start()]))
        last = found.end()
        if found["code"]:
            pieces.append(f"<code>{html.escape(found['code'])}</code>")
        elif found["to"]:
            pieces.append(f'<a href="{html.escape(found["to"])}">{inline(found["text"])}</a>')
        else:
            name = "strong" if found["strong"] else "em"
            pieces.append(f"<{name}>{inline(found[name])}</{name}>")
    return "".join(pieces) + html.escape(text[last:])


def written(text: str) -> str:
    """Markdown as HTML: headings (from level 3 down), paragraphs, lists, tables, code."""
    found, fenced = [], re.split(r"^```[^\n]*\n(.*?)^```\s*$", text, flags=re.MULTILINE | re.DOTALL)
    for position, part in enumerate(fenced):
        if position % 2:
            found.append(f"<pre><code>{html.escape(part.rstrip())}</code></pre>")
            continue
        for paragraph in re.split(r"\n\s*\n|\n(?=#+ )|(?<=\n)(?=#+ )", part):
            found += _paragraph(paragraph.strip("\n"))
    return "\n".join(found)


def _paragraph(text: str) -> list[str]:
    lines = text.split("\n")
    if not text.strip():
        return []
    if heading := re.fullmatch(r"(#+) (.*)", lines[0]):
        level = min(6, max(3, len(heading[1]) + 1))
        return [f"<h{level}>{inline(heading[2])}</h{level}>", *_paragraph("\n".join(lines[1:]))]
    if lines[0].lstrip().startswith("|") and len(lines) > 1:
        cells = [tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))) for line in lines]
        return [_grid(Grid(cells[0], tuple(cells[2:])))]
    if re.match(r"\s*[-*] ", lines[0]):
        items = re.split(r"^\s*[-*] ", text, flags=re.MULTILINE)[1:]
        return ["<ul>", *(f"<li>{inline(' '.join(item.split()))}</li>" for item in items), "</ul>"]
    return [f"<p>{inline(' '.join(text.split()))}</p>"]


_CSS = """
:root{color-scheme:light;--ink:#222;--soft:#666;--line:#ddd;--blue:#0072B2;--orange:#B84A00;--green:#00795A;--amber:#8A6100}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:72rem;color:var(--ink);background:#fff;
 font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 1rem}
h2{font-size:1.3rem;margin:2.4rem 0 .6rem;padding-top:.4rem;border-top:2px solid var(--ink)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
p,li,figcaption{max-width:46rem;overflow-wrap:anywhere}
a{color:var(--blue)}
code{font:.88em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:#f4f4f4;padding:.05em .25em;border-radius:3px;
 overflow-wrap:anywhere}
pre{background:#f4f4f4;padding:.7rem;overflow-x:auto;border-radius:4px}
pre code{padding:0;background:none;overflow-wrap:normal}
nav{font-size:.92rem;background:#f7f7f7;padding:.6rem 1rem;border-radius:6px}
nav ul{margin:0;padding:0;list-style:none;columns:16rem}
nav li{break-inside:avoid;padding:.08rem 0}
nav a{text-decoration:none}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.86rem;line-height:1.35;margin:.6rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.32rem .6rem .32rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{border-bottom:1.5px solid var(--ink);font-weight:600;vertical-align:bottom}
td small{display:block;color:var(--soft);font-size:.82em;width:max-content;max-width:11rem}
.mean{white-space:nowrap}
td:first-child{min-width:6rem}
td code{white-space:nowrap}
.wide td{min-width:4.5rem}
.runs{font-size:.82rem}
.runs th,.runs td{padding-right:.35rem}
.runs th{font-size:.88em}
.runs td:first-child{min-width:0}
.runs small{max-width:5.5rem}
.word{display:inline-block;font-weight:600;white-space:nowrap}
.none{font-weight:400}.good{color:var(--green)}.fair{color:var(--amber)}.bad{color:var(--orange)}.plan{color:var(--blue)}.none{color:var(--soft)}
b.held{color:var(--green)}.half{color:var(--amber)}.failed{color:var(--orange)}.open{color:var(--soft)}
.open strong{font-weight:400}
div.held,div.failed,div.open,div.half{padding-left:1.1em;text-indent:-1.1em}
.aside{color:var(--soft);font-size:.92em;margin-top:.25rem}
li.marked{list-style:none;margin-left:-1.1rem;padding-left:1.2em;text-indent:-1.2em}
figure{margin:1.2rem 0;break-inside:avoid}
figure svg{display:block;width:100%;max-width:46rem;min-width:34rem;height:auto}
figure svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif!important}
figcaption,.note{font-size:.9rem;color:var(--soft)}
details{margin:.6rem 0}
summary{cursor:pointer;color:var(--blue)}
@media (max-width:40rem){
 td:first-child{min-width:0}
 body{padding:.7rem;font-size:15px}
 .wide thead{display:none}
 .wide,.wide tbody,.wide tr,.wide td{display:block;width:100%}
 .wide tr{border-bottom:1px solid var(--ink);padding:.4rem 0}
 .wide td{border:0;padding:.12rem 0}
 .runs thead{display:none}
 .runs,.runs tbody,.runs tr{display:block;width:100%}
 .runs tr{border-bottom:1px solid var(--ink);padding:.4rem 0}
 .runs td{display:inline-block;border:0;padding:.12rem .8rem .12rem 0}
 .runs td::before{content:attr(data-label);display:block;color:var(--soft);font-size:.82em}
}
@media print{
 body{max-width:none;font-size:10pt;padding:0}
 nav,.scroll{overflow:visible}
 h2,h3{break-after:avoid}
 tr{break-inside:avoid}
 table,.runs{font-size:7.5pt}
 figure svg{min-width:0}
 a{color:inherit;text-decoration:none}
}
"""
