"""Parsing of untrusted XML to elements with line numbers, within limits of time and memory.

The limits are enforced while the file streams in, so that a hostile file is refused before it is
stored. A document type (and with it every entity) is refused: no robot needs one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.sax import SAXException, SAXParseException
from xml.sax.expatreader import ExpatLocator
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from remora.errors import Fault, ModelError
from remora.model.formats.bounded_reading import CHUNK, chunks

#: Maximum file size, bytes.
MAX_BYTES = 32 * 2**20
#: Maximum depth of nested elements.
MAX_DEPTH = 64
#: Maximum number of elements: ten thousand bodies with twenty elements each.
MAX_ELEMENTS = 200_000
#: Maximum length of an attribute, characters.
MAX_ATTRIBUTE = 10_000
#: An XML declaration after blank lines, which XML does not allow; it is skipped.
_DECLARATION = re.compile(rb"\A(\s+)<\?xml[^<>\n]{0,200}\?>")


@dataclass(frozen=True, slots=True)
class Element:
    """An XML element.

    Attributes:
        tag: its name, with the namespace prefix as written.
        attributes: by name.
        line: line where it starts, from 1.
        children: the elements inside, in order.
        pieces: the text between them, truncated to `MAX_ATTRIBUTE`.
    """

    tag: str
    attributes: Mapping[str, str]
    line: int
    children: list[Element]
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The text inside, without surrounding blanks."""
        return "".join(self.pieces).strip()

    @property
    def label(self) -> str:
        """The element as shown in error messages: `<link name="arm">`."""
        name = self.attributes.get("name")
        attribute = "" if name is None else f' name="{shown(name)}"'
        return f"<{shown(self.tag)}{attribute}>"


def parse(path: str | Path, content: bytes | None = None) -> Element:
    """Read an XML file and return its root element.

    Raises:
        ModelError: if the file cannot be read, is not well-formed, declares a document type or
            exceeds a limit.
    """
    source = str(path)
    tree = _Tree(source)
    parser = DefusedExpatParser(forbid_dtd=True, forbid_entities=True, forbid_external=True)
    parser.setContentHandler(tree)
    tree.setDocumentLocator(ExpatLocator(parser))
    try:
        pieces = chunks(path, MAX_BYTES) if content is None else _pieces(content)
        for chunk in _chunks(pieces, source):
            parser.feed(chunk)
        parser.close()
    except SAXParseException as error:
        line = error.getLineNumber()
        _refuse(source, "XML", f"is not well-formed: {error.getMessage()}", line)
    except DefusedXmlException:
        reason = "declares a document type or an entity, which is not allowed; remove <!DOCTYPE>"
        _refuse(source, "XML", reason, tree.line)
    except (SAXException, LookupError, ValueError) as error:  # an encoding Python does not know
        _refuse(source, "XML", f"cannot be decoded: {shown(str(error))}", tree.line)
    if tree.root is None:
        _refuse(source, "XML", "has no elements")
    return tree.root


def shown(text: str, length: int = 80) -> str:
    """Return text from a file for printing: truncated, control characters escaped."""
    cut = text if len(text) <= length else text[: length - 3] + "..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)


class _Tree(ContentHandler):
    """Builds elements from the parser's events, and enforces the limits."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.root: Element | None = None
        self._source = source
        self._open: list[Element] = []
        self._count = 0
        self._where: Locator | None = None

    @property
    def line(self) -> int:
        """The current line of the parser."""
        return (self._where.getLineNumber() if self._where is not None else None) or 1

    def setDocumentLocator(self, locator: Locator) -> None:
        self._where = locator

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        element = Element(name, dict(attrs.items()), self.line, [])
        self._count += 1
        if len(self._open) >= MAX_DEPTH:
            self._stop(element, f"is nested deeper than {MAX_DEPTH} elements")
        if self._count > MAX_ELEMENTS:
            self._stop(element, f"the file has more than {MAX_ELEMENTS} elements")
        for key, value in element.attributes.items():
            if max(len(key), len(value)) > MAX_ATTRIBUTE:
                reason = f"is longer than {MAX_ATTRIBUTE} characters"
                self._stop(element, f"attribute {shown(key)} {reason}")
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def endElement(self, name: str) -> None:
        self._open.pop()

    def characters(self, content: str) -> None:
        pieces = self._open[-1].pieces
        if (pieces or not content.isspace()) and len(pieces) < 100:
            pieces.append(content[:MAX_ATTRIBUTE])

    def _stop(self, element: Element, reason: str) -> NoReturn:
        _refuse(self._source, element.label, reason, element.line)


def _pieces(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), CHUNK):
        yield content[start : start + CHUNK]


def _chunks(pieces: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield the file in chunks, each containing a tag.

    A full chunk without a "<" is one very long token, which the parser would buffer until its end;
    no legitimate file has one.
    """
    empty, zeros, wide = True, b"", False
    for chunk in pieces:
        if empty:
            chunk = _DECLARATION.sub(rb"\1", chunk)
            wide = b"\0" in chunk[:4]  # UTF-16, where zeros are part of the text
        if len(chunk) == CHUNK and b"<" not in chunk:
            _refuse(source, "XML", f"has no element in {CHUNK} bytes on end")
        empty = False
        if not wide:  # some editors leave zeros at the end of a file
            chunk = zeros + chunk
            zeros = chunk[len(chunk.rstrip(b"\0")) :]
            chunk = chunk[: len(chunk) - len(zeros)]
        yield chunk
    if empty:
        _refuse(source, "file", "is empty")


def _refuse(source: str, element: str, reason: str, line: int | None = None) -> NoReturn:
    raise ModelError(source, [Fault(element, reason, line)]) from None
