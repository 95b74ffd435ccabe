package http1

// parameters takes, byte by byte, what may follow a word in two places:
//
//	chunk-ext: *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )   (RFC 9112, 7.1.1)
//	a coding:  *( OWS ";" OWS token BWS "=" BWS ( token / quoted-string ) ) OWS   (RFC 9112, 7)
//
// The zero value is ready, for the first; coding makes it the second.
type parameters struct {
	state  parametersState
	coding bool // a parameter needs a value, and blanks may come last
	some   bool // there is a parameter
}

// parametersState is what the next byte belongs to.
type parametersState uint8

const (
	parametersWord   parametersState = iota // blanks before a parameter, or the parameter: none so far
	parametersBlanks                        // the same after a blank
	parametersName1                         // blanks before a name, and its first byte
	parametersName                          // the rest of it
	parametersEquals                        // blanks after it, and "="
	parametersValue1                        // blanks before a value, and its first byte
	parametersValue                         // the rest of a token
	parametersQuoted                        // the inside of a quoted-string
	parametersPair                          // the byte after a backslash in it
)

// take takes one more byte and reports whether it may stand here.
func (p *parameters) take(c byte) bool {
	next := p.state
	switch p.state {
	case parametersWord, parametersBlanks:
		switch {
		case isBlank(c):
			next = parametersBlanks
		case c == ';':
			next = parametersName1
			p.some = true
		default:
			return false
		}
	case parametersName1:
		switch {
		case isBlank(c):
		case is(c, tokenByte):
			next = parametersName
		default:
			return false
		}
	case parametersName, parametersEquals:
		switch {
		case is(c, tokenByte) && p.state == parametersName:
		case isBlank(c):
			next = parametersEquals
		case c == '=':
			next = parametersValue1
		case c == ';' && !p.coding:
			next = parametersName1
		default:
			return false
		}
	case parametersValue1:
		switch {
		case isBlank(c):
		case is(c, tokenByte):
			next = parametersValue
		case c == '"':
			next = parametersQuoted
		default:
			return false
		}
	case parametersValue:
		switch {
		case is(c, tokenByte):
		case isBlank(c):
			next = parametersBlanks
		case c == ';':
			next = parametersName1
		default:
			return false
		}
	case parametersQuoted:
		switch {
		case is(c, quotedByte):
		case c == '"':
			next = parametersWord
		case c == '\\':
			next = parametersPair
		default:
			return false
		}
	case parametersPair:
		if !is(c, valueByte) {
			return false
		}
		next = parametersQuoted
	}
	p.state = next
	return true
}

// whole reports whether they may end here.
func (p *parameters) whole() bool {
	switch p.state {
	case parametersWord, parametersValue:
		return true
	case parametersName:
		return !p.coding
	case parametersBlanks:
		return p.coding
	}
	return false
}
