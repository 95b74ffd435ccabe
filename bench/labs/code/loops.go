package code

import (
	"crypto/subtle"
	"encoding/binary"
)

// Loops. A WebSocket's payload is unmasked (RFC 6455, 5.3). Bytes does it as the rule says.
func Bytes(b []byte, key [4]byte) {
	for i := range b {
		b[i] ^= key[i&3]
	}
}

// Unrolled does four in a turn. That i+4 cannot overflow the compiler does not see: four checks.
func Unrolled(b []byte, key [4]byte) {
	i := 0
	for ; i+4 <= len(b); i += 4 {
		b[i] ^= key[0]
		b[i+1] ^= key[1]
		b[i+2] ^= key[2]
		b[i+3] ^= key[3]
	}
	Bytes(b[i:], key)
}

// Unchecked does four in a turn, after one look at the length: no check is left.
func Unchecked(b []byte, key [4]byte) {
	for ; len(b) >= 4; b = b[4:] {
		b[0] ^= key[0]
		b[1] ^= key[1]
		b[2] ^= key[2]
		b[3] ^= key[3]
	}
	Bytes(b, key)
}

// Words does eight at once: not the same loop made faster, but another one.
func Words(b []byte, key [4]byte) {
	four := uint64(binary.LittleEndian.Uint32(key[:]))
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^(four<<32|four))
	}
	Bytes(b, key)
}

// Vectors has the library do it, in assembly: no key is so long, so this one is repeated. Each message
// has a key of its own, so this is a part of it.
func Vectors(b []byte, key [4]byte) {
	var keys [256]byte
	Words(keys[:], key)
	for len(b) > 0 {
		b = b[subtle.XORBytes(b, b, keys[:]):]
	}
}
