"""Delimited text read slowly: line by line, a row that is open tried again with each further line."""

import csv


def parsed(text, separator):
    """Return the fields of one row, None where a quote is open; raise ValueError where none can be."""
    try:
        (row,) = csv.reader([line + "\n" for line in text.split("\n")], delimiter=separator, strict=True)
    except csv.Error as error:
        if "unexpected end of data" in str(error):
            return None
        raise ValueError(str(error)) from None
    return row


def stands_alone(line, separator):
    """Return the fields of a line in which quotes go from end to end of a field, else None."""
    fields, rest = [], line
    while True:
        if rest.startswith('"'):
            end = 1
            while True:
                end = rest.find('"', end)
                if end < 0:
                    return None
                if rest[end : end + 2] != '""':
                    break
                end += 2
            field, rest = rest[: end + 1], rest[end + 1 :]
        else:
            end = rest.find(separator)
            end = len(rest) if end < 0 else end
            field, rest = rest[:end], rest[end:]
            if '"' in field:
                return None
        fields.append(field)
        if not rest:
            return fields
        if not rest.startswith(separator):
            return None
        rest = rest[len(separator) :]


def read(text, separator):
    """Return (header, rows, first lines of rows, comments, rows that begin with #)."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    header, rows, numbers, comments, hashed, k = None, [], [], 0, 0, 0
    quotes = any('"' in line for line in lines)
    while k < len(lines):
        line, start = lines[k], k + 1
        k += 1
        if not line.strip():
            continue
        if line.startswith("#"):
            if header is None:
                continue
            fields = stands_alone(line, separator) if quotes else line.split(separator)
            if fields is None or len(fields) != len(header):
                comments += 1
                continue
            hashed += 1
        row = parsed(line, separator) if quotes else line.split(separator)
        while row is None and k < len(lines):
            line += "\n" + lines[k]
            k += 1
            row = parsed(line, separator)
        if row is None:
            raise ValueError("open quote")
        if header is None:
            header = [name.strip() for name in row]
            continue
        if len(row) != len(header):
            raise ValueError(f"line {start}: {len(row)} fields")
        rows.append(row)
        numbers.append(start)
    return header, rows, numbers, comments, hashed
