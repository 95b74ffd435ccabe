package main

import (
	"crypto/sha1"
	"encoding/base64"
	"strings"

	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// socketPath is where WebSockets are opened: each message comes back as it was
// sent. Whoever may connect may use it, so Origin is not looked at (RFC 6455, 10.2).
const socketPath = "/websocket"

const (
	// keyLength is that of a Sec-WebSocket-Key: 16 bytes in base64.
	keyLength = 24

	// acceptSuffix is what stands behind the key when it is hashed (RFC 6455, 1.3).
	acceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

// acceptKey is a Sec-WebSocket-Accept: a SHA-1 in base64.
type acceptKey [28]byte

// handshake judges a request for socketPath (RFC 6455, 4.2.1). The response
// becomes 101, and the connection is a WebSocket's behind it; or it says what is
// wrong. No extension and no subprotocol is ever accepted, so none is answered.
func (c *conn) handshake(request *http1.Request, response *http1.Response) {
	key := request.Values("Sec-Websocket-Key")
	switch {
	case request.Method != "GET":
		response.Error(405)
		response.Allow = "GET"
	case request.Minor == 0 || !lists(request.Values("Upgrade"), "websocket") || !lists(request.Values("Connection"), "upgrade"):
		// HTTP/1.0 cannot ask for it (RFC 9110, 7.8).
		response.Error(426)
		response.Close = true
	case !isVersion13(request.Values("Sec-Websocket-Version")):
		response.Error(426) // and which one would do (RFC 6455, 4.4)
		response.Close = true
	case len(key) != 1 || !c.acceptFor(key[0]):
		response.Error(400)
	case c.loop.draining:
		response.Error(503)
		response.Close = true
	default:
		response.Status = 101
	}
}

// lists reports whether a field that is a list has this token or protocol,
// whatever the case of its letters.
func lists(values []string, token string) bool {
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.Trim(element, " \t"), token) {
				return true
			}
		}
	}
	return false
}

func isVersion13(values []string) bool { return len(values) == 1 && values[0] == "13" }

// acceptFor keeps the answer to a key for appendHead, and reports whether it is a
// key: 16 bytes in base64, whatever they are.
func (c *conn) acceptFor(key string) bool {
	if len(key) != keyLength {
		return false
	}
	var nonce [keyLength]byte
	if n, err := base64.StdEncoding.Strict().Decode(nonce[:], []byte(key)); err != nil || n != 16 {
		return false
	}
	sum := sha1.Sum([]byte(key + acceptSuffix))
	base64.StdEncoding.Encode(c.loop.accept[:], sum[:])
	return true
}

// appendUpgrade appends the fields of 101 and 426 that come before Server.
func (c *conn) appendUpgrade(dst []byte, status int) []byte {
	switch status {
	case 101:
		dst = append(dst, "Sec-WebSocket-Accept: "...)
		dst = append(dst, c.loop.accept[:]...)
		return append(dst, "\r\n"...)
	case 426:
		return append(dst, "Sec-WebSocket-Version: 13\r\n"...)
	}
	return dst
}
