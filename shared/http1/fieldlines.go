package http1

import (
	"encoding/binary"
	"math/bits"
)

// fieldLines scans field lines (RFC 9112, 5) through the empty line that ends them: those of a head,
// and the trailers of a body. The zero value is ready.
type fieldLines struct {
	state fieldState
	// names says that lines are those of a head: they are counted, their names looked at, and a line
	// whose field the judge must know is reported. The bytes must then stay at their offsets.
	names    bool
	field    knownField
	count    int // of the lines so far
	line     int // where the line begins
	value    int // where its value begins
	valueEnd int // where its value ends, with any trailing blanks
	fault    *Fault
}

// fieldState is what the next byte belongs to.
type fieldState uint8

const (
	fieldLine    fieldState = iota // the first byte of a line
	fieldName                      // field-name, and the colon
	fieldBlanks                    // optional white space before the value
	fieldValue                     // field-value with trailing blanks, and the carriage return
	fieldEnd                       // the line feed
	fieldAllDone                   // the line feed of the empty line
)

// knownField is a field that the judge must know.
type knownField uint8

const (
	otherField knownField = iota
	hostField
	expectField
	connectionField
	contentLengthField
	transferEncodingField
)

// scan takes the bytes b[i:end]. It returns with lineDone after each line that is to be reported, and
// with allDone after the last one.
func (f *fieldLines) scan(b []byte, i, end int) (int, event) {
	b = b[:end]
	state := f.state
	for {
		switch state {
		case fieldLine:
			if i == end {
				f.state = fieldLine
				return i, needMore
			}
			look(1)
			c := b[i]
			if !is(c, tokenByte) {
				if c != '\r' {
					return f.refuse(i, notAName(c, true))
				}
				i++
				state = fieldAllDone
				continue
			}
			f.line = i
			if f.names {
				if f.count == MaxHeaders {
					return f.refuse(i, faultHeaders)
				}
				f.count++
			}
			i++
			fallthrough
		case fieldName:
			from := i
			for i < len(b) && is(b[i], tokenByte) {
				i++
			}
			look(min(i+1, end) - from)
			if i == end {
				f.state = fieldName
				return i, needMore
			}
			if c := b[i]; c != ':' {
				return f.refuse(i, notAName(c, false))
			}
			f.field = otherField
			if f.names {
				f.field = known(b[f.line:i])
			}
			i++
			fallthrough
		case fieldBlanks:
			from := i
			for i < len(b) && isBlank(b[i]) {
				i++
			}
			look(min(i+1, end) - from)
			if i == end {
				f.state = fieldBlanks
				return i, needMore
			}
			f.value = i
			fallthrough
		case fieldValue:
			i = skipValue(b, i)
			if i == end {
				f.state = fieldValue
				return i, needMore
			}
			if c := b[i]; c != '\r' {
				return f.refuse(i, notAValue(c))
			}
			f.valueEnd = i
			i++
			fallthrough
		case fieldEnd:
			if i == end {
				f.state = fieldEnd
				return i, needMore
			}
			look(1)
			if b[i] != '\n' {
				return f.refuse(i, faultBareCR)
			}
			i++
			if f.field != otherField {
				f.state = fieldLine
				return i, lineDone
			}
			state = fieldLine
		case fieldAllDone:
			if i == end {
				f.state = fieldAllDone
				return i, needMore
			}
			look(1)
			if b[i] != '\n' {
				return f.refuse(i, faultBareCR)
			}
			return i + 1, allDone
		}
	}
}

func (f *fieldLines) refuse(i int, fault *Fault) (int, event) {
	f.fault = fault
	return i, refused
}

// notAName is the fault of a byte that can neither be in a name nor end it.
func notAName(c byte, first bool) *Fault {
	switch {
	case isBlank(c) && first:
		return faultBlankFirst
	case isBlank(c):
		return faultBlankInName
	case c == '\r':
		return faultNoColon
	case c == '\n':
		return faultBareLF
	}
	return faultName
}

// notAValue is the fault of a byte that can neither be in a value nor end it.
func notAValue(c byte) *Fault {
	if c == '\n' {
		return faultBareLF
	}
	return faultValue
}

// skipValue returns the offset, from i on, of the first byte of b that a field value may not hold;
// len(b) if there is none.
func skipValue(b []byte, i int) int {
	for words := 1; i+8 <= len(b); words++ {
		look(8)
		w := word(b[i:])
		if stop := ^fineBytes(w) & tops; stop != 0 {
			// Adding 0x7f sets the top bit of all but zero: only what is no tab still stops.
			stop &= (w&^tops ^ '\t'*ones) + (tops - ones)
			if stop != 0 {
				return i + bits.TrailingZeros64(stop)/8
			}
		}
		i += 8
		if words%4 == 0 {
			i = skipFine(b, i)
		}
	}
	from := i
	for i < len(b) && is(b[i], valueByte) {
		i++
	}
	look(min(i+1, len(b)) - from)
	return i
}

// skipFine skips four words at a time, as long as there is not one control byte in them: worth trying
// in a value that has proved to be long, and only there.
func skipFine(b []byte, i int) int {
	for ; i+32 <= len(b); i += 32 {
		look(32)
		v := b[i : i+32]
		fine := fineBytes(word(v)) & fineBytes(word(v[8:])) & fineBytes(word(v[16:])) & fineBytes(word(v[24:]))
		if fine&tops != tops {
			break
		}
	}
	return i
}

// One byte's least and highest bit, in each of eight.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// word is the first eight bytes of b, the first one lowest.
func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// fineBytes has the top bit set for those of eight bytes that are no control bytes, tabs being counted
// as such. With the top bit off, adding 0x60 sets it from 0x20 up, and adding 1 for 0x7f alone; a byte
// whose top bit was on is fine anyway.
func fineBytes(w uint64) uint64 {
	low := w &^ tops
	return (low+0x60*ones)&^(low+ones) | w
}

// known tells which field a name means, in any case.
func known(name []byte) knownField {
	field := otherField
	word := ""
	switch len(name) {
	case 4:
		field, word = hostField, "host"
	case 6:
		field, word = expectField, "expect"
	case 10:
		field, word = connectionField, "connection"
	case 14:
		field, word = contentLengthField, "content-length"
	case 17:
		field, word = transferEncodingField, "transfer-encoding"
	default:
		return otherField
	}
	if name[0]|0x20 != word[0] {
		return otherField
	}
	if !equalFold(name, word) {
		return otherField
	}
	return field
}
