package app

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// appendJSON appends text as a JSON string with its quotes (RFC 8259, 7), byte for byte as encoding/json
// writes it with SetEscapeHTML(false): a byte that is not UTF-8 becomes \ufffd, and U+2028 and U+2029,
// which end a line in JavaScript, are escaped. strconv.AppendQuote writes Go, not JSON.
func appendJSON(dst []byte, text string) []byte {
	dst = append(dst, '"')
	kept := 0 // text[kept:i] needs no escape and is not copied yet
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, text[kept:i]...)
			dst = appendEscape(dst, c)
			i++
			kept = i
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, text[kept:i]...), `\ufffd`...)
			kept = i + size
		case r == '\u2028' || r == '\u2029':
			dst = append(append(dst, text[kept:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&15])
			kept = i + size
		}
		i += size
	}
	dst = append(dst, text[kept:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
