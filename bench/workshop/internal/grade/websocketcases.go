package grade

import (
	"fmt"
	"strings"
)

// handshakeCase is a request, and the status of its answer.
type handshakeCase struct {
	section, what string
	line          string // "" is a GET of socketPath
	fields        string // behind Host; "" are the usual ones
	more          string // fields behind those
	behind        string // a message that is sent in the same piece, and comes back
	status        int
}

const (
	upgradeFields    = "Upgrade: websocket\r\n"
	connectionFields = "Connection: Upgrade\r\n"
	keyFields        = "Sec-WebSocket-Key: " + sampleKey + "\r\n"
	versionFields    = "Sec-WebSocket-Version: 13\r\n"
	usualFields      = upgradeFields + connectionFields + keyFields + versionFields
)

func (e *handshakeCase) request() string {
	line, fields := e.line, e.fields
	if line == "" {
		line = "GET " + socketPath + " HTTP/1.1"
	}
	if fields == "" {
		fields = usualFields
	}
	request := line + "\r\nHost: a\r\n" + fields + e.more + "\r\n"
	if e.behind != "" {
		request += textMessage(e.behind)
	}
	return request
}

// handshakeCases are in the order of the RFC's sections.
var handshakeCases = []handshakeCase{
	{section: "1.3", what: "the sample handshake", status: 101},
	{section: "4.1", what: "a message right behind the handshake", behind: "early", status: 101},
	{section: "4.1", what: "a query", line: "GET " + socketPath + "?a=b HTTP/1.1", status: 101},
	{section: "4.1", what: "an Origin", more: "Origin: http://example.com\r\n", status: 101},
	{section: "4.2.1", what: "a POST", line: "POST " + socketPath + " HTTP/1.1", more: "Content-Length: 0\r\n", status: 405},
	{section: "4.2.1", what: "a HEAD", line: "HEAD " + socketPath + " HTTP/1.1", status: 405},
	{section: "4.2.1", what: "HTTP/1.0, which cannot upgrade", line: "GET " + socketPath + " HTTP/1.0", status: 426},
	{section: "4.2.1", what: "no Upgrade", fields: connectionFields + keyFields + versionFields, status: 426},
	{section: "4.2.1", what: "an Upgrade to something else", fields: "Upgrade: h2c\r\n" + connectionFields + keyFields + versionFields, status: 426},
	{section: "4.2.1", what: "an Upgrade that only begins like it", fields: "Upgrade: websockets\r\n" + connectionFields + keyFields + versionFields, status: 426},
	{section: "4.2.1", what: "an Upgrade in other letters", fields: "upgrade: WebSocket\r\n" + connectionFields + keyFields + versionFields, status: 101},
	{section: "4.2.1", what: "an Upgrade with a choice", fields: "Upgrade: h2c, websocket\r\n" + connectionFields + keyFields + versionFields, status: 101},
	{section: "4.2.1", what: "no Connection", fields: upgradeFields + keyFields + versionFields, status: 426},
	{section: "4.2.1", what: "a Connection without Upgrade", fields: upgradeFields + "Connection: keep-alive\r\n" + keyFields + versionFields, status: 426},
	{section: "4.2.1", what: "a Connection that is a list", fields: upgradeFields + "Connection: keep-alive, upgrade\r\n" + keyFields + versionFields, status: 101},
	{section: "4.2.1", what: "a Connection in two lines", fields: upgradeFields + "Connection: keep-alive\r\nConnection: Upgrade\r\n" + keyFields + versionFields, status: 101},
	{section: "4.2.1", what: "no key", fields: upgradeFields + connectionFields + versionFields, status: 400},
	{section: "4.2.1", what: "a key of 15 bytes", fields: upgradeFields + connectionFields + versionFields, more: "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAA\r\n", status: 400},
	{section: "4.2.1", what: "a key of 17 bytes", fields: upgradeFields + connectionFields + versionFields, more: "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAAA=\r\n", status: 400},
	{section: "4.2.1", what: "a key that is no base64", fields: upgradeFields + connectionFields + versionFields, more: "Sec-WebSocket-Key: !!!!!!!!!!!!!!!!!!!!!!==\r\n", status: 400},
	{section: "4.2.1", what: "two keys", more: keyFields, status: 400},
	{section: "4.2.1", what: "no version", fields: upgradeFields + connectionFields + keyFields, status: 426},
	{section: "4.2.2", what: "a subprotocol is offered", more: "Sec-WebSocket-Protocol: chat, superchat\r\n", status: 101},
	{section: "4.4", what: "version 8", fields: upgradeFields + connectionFields + keyFields, more: "Sec-WebSocket-Version: 8\r\n", status: 426},
	{section: "4.4", what: "two versions", more: "Sec-WebSocket-Version: 8\r\n", status: 426},
	{section: "9.1", what: "an extension is offered", more: "Sec-WebSocket-Extensions: permessage-deflate\r\n", status: 101},
}

// wantedFrame is a frame that comes back.
type wantedFrame struct {
	opcode  byte
	payload string
}

// What ends a conversation beside a status code.
const (
	staysOpen   = 0  // nothing: the connection goes on
	withoutCode = -1 // a Close frame that has none
)

// frameCase is what is sent over a WebSocket, and what comes back of it.
type frameCase struct {
	section, what string
	send          string
	want          []wantedFrame
	code          int // of the Close frame that comes last
}

// frameCases are in the order of the RFC's sections.
func frameCases() (all []frameCase) {
	add := func(section, what, send string, code int, want ...wantedFrame) {
		all = append(all, frameCase{section, what, send, want, code})
	}
	echo := func(section, what string, opcode byte, payload string) {
		add(section, what, clientFrame(finBit|opcode, payload), staysOpen, wantedFrame{opcode, payload})
	}

	add("5.1", "a frame without a mask", serverFrame(opText, "bare"), 1002)
	add("5.1", "a Ping without a mask", serverFrame(opPing, ""), 1002)
	add("5.1", "a message, then a frame without a mask", textMessage("good")+serverFrame(opText, "bad"), 1002, wantedFrame{opText, "good"})

	for bit, name := range []string{"RSV3", "RSV2", "RSV1"} {
		add("5.2", name+" is set", clientFrame(finBit|0x10<<bit|opText, "reserved"), 1002)
	}
	add("5.2", "RSV1 in a control frame", clientFrame(finBit|0x40|opPing, ""), 1002)
	for _, opcode := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		add("5.2", fmt.Sprintf("the reserved opcode %d", opcode), clientFrame(finBit|opcode, "?"), 1002)
	}
	add("5.2", "a reserved opcode is refused at its first byte", "\x83", 1002)
	for _, n := range []int{0, 1, 124, 125, 126, 127, 128, 65_535, 65_536, 65_537} {
		echo("5.2", fmt.Sprintf("a text of %d bytes", n), opText, strings.Repeat("t", n))
		echo("5.2", fmt.Sprintf("a binary message of %d bytes", n), opBinary, strings.Repeat("\xf5", n))
	}
	add("5.2", "125 bytes, with a length of two bytes", "\x82\xfe\x00\x7d"+masks(sampleMask, strings.Repeat("x", 125)), 1002)
	add("5.2", "126 bytes, with a length of eight bytes", "\x82\xff\x00\x00\x00\x00\x00\x00\x00\x7e"+masks(sampleMask, strings.Repeat("x", 126)), 1002)
	add("5.2", "no byte, with a length of two bytes", "\x82\xfe\x00\x00"+sampleMask, 1002)
	add("5.2", "65535 bytes announced in eight bytes", "\x82\xff\x00\x00\x00\x00\x00\x00\xff\xff"+sampleMask, 1002)
	add("5.2", "a length with its highest bit set", "\x82\xff\x80\x00\x00\x00\x00\x01\x00\x00"+sampleMask, 1002)

	for n := range 20 {
		payload := "0123456789abcdefghij"[:n]
		add("5.3", fmt.Sprintf("%d bytes under another mask", n), string([]byte{finBit | opBinary, 0x80 | byte(n)})+masks("\x01\x80\xff\x7e", payload), staysOpen, wantedFrame{opBinary, payload})
	}
	add("5.3", "a mask of zeros", "\x82\x83"+masks("\x00\x00\x00\x00", "abc"), staysOpen, wantedFrame{opBinary, "abc"})

	add("5.4", "two fragments", clientFrame(opText, "one")+clientFrame(finBit, "two"), staysOpen, wantedFrame{opText, "onetwo"})
	add("5.4", "four fragments, two of them empty", clientFrame(opBinary, "")+clientFrame(0, "a")+clientFrame(0, "")+clientFrame(finBit, "b"), staysOpen, wantedFrame{opBinary, "ab"})
	add("5.4", "nothing but empty fragments", clientFrame(opText, "")+clientFrame(0, "")+clientFrame(finBit, ""), staysOpen, wantedFrame{opText, ""})
	add("5.4", "a last fragment that is empty", clientFrame(opText, "all of it")+clientFrame(finBit, ""), staysOpen, wantedFrame{opText, "all of it"})
	many := clientFrame(opText, "0")
	for range 500 {
		many += clientFrame(0, "1")
	}
	add("5.4", "502 fragments", many+clientFrame(finBit, "2"), staysOpen, wantedFrame{opText, "0" + strings.Repeat("1", 500) + "2"})
	large := fileText(20_000)
	add("5.4", "large fragments", clientFrame(opText, large)+clientFrame(0, large)+clientFrame(finBit, large), staysOpen, wantedFrame{opText, large + large + large})
	add("5.4", "a Ping between fragments", clientFrame(opText, "a")+clientFrame(finBit|opPing, "now")+clientFrame(finBit, "b"), staysOpen, wantedFrame{opPong, "now"}, wantedFrame{opText, "ab"})
	add("5.4", "a Pong between fragments", clientFrame(opText, "a")+clientFrame(finBit|opPong, "now")+clientFrame(finBit, "b"), staysOpen, wantedFrame{opText, "ab"})
	add("5.4", "a Close between fragments", clientFrame(opText, "a")+closeFrame(1000, ""), 1000)
	add("5.4", "two messages of fragments", clientFrame(opText, "a")+clientFrame(finBit, "b")+clientFrame(opBinary, "c")+clientFrame(finBit, "d"), staysOpen, wantedFrame{opText, "ab"}, wantedFrame{opBinary, "cd"})
	add("5.4", "a continuation of nothing", clientFrame(finBit, "?"), 1002)
	add("5.4", "a continuation of a message that has ended", textMessage("whole")+clientFrame(0, "?"), 1002, wantedFrame{opText, "whole"})
	add("5.4", "a text within a message", clientFrame(opText, "a")+textMessage("b"), 1002)
	add("5.4", "a binary message within a message", clientFrame(opBinary, "a")+clientFrame(finBit|opBinary, "b"), 1002)

	add("5.5", "a Ping in fragments", clientFrame(opPing, "a")+clientFrame(finBit, "b"), 1002)
	add("5.5", "a Close in fragments", clientFrame(opClose, "\x03\xe8"), 1002)
	add("5.5", "a Pong in fragments", clientFrame(opPong, ""), 1002)
	add("5.5", "a Ping of 126 bytes", clientFrame(finBit|opPing, strings.Repeat("p", 126)), 1002)
	add("5.5", "a Close of 126 bytes", closeFrame(1000, strings.Repeat("c", 124)), 1002)

	add("5.5.1", "a Close without a code", clientFrame(finBit|opClose, ""), withoutCode)
	add("5.5.1", "a Close", closeFrame(1000, ""), 1000)
	add("5.5.1", "a Close with a reason", closeFrame(1000, "enough for today"), 1000)
	add("5.5.1", "a Close with the longest reason", closeFrame(1000, strings.Repeat("r", 123)), 1000)
	add("5.5.1", "a Close with half a code", clientFrame(finBit|opClose, "\x03"), 1002)
	add("5.5.1", "messages behind a Close", closeFrame(1000, "")+textMessage("too late")+clientFrame(finBit|opPing, "?"), 1000)
	add("5.5.1", "messages before a Close", textMessage("a")+textMessage("b")+closeFrame(1001, ""), 1001, wantedFrame{opText, "a"}, wantedFrame{opText, "b"})

	add("5.5.2", "a Ping", clientFrame(finBit|opPing, ""), staysOpen, wantedFrame{opPong, ""})
	add("5.5.2", "a Ping with bytes that are no text", clientFrame(finBit|opPing, "\xff\xfe\x00"), staysOpen, wantedFrame{opPong, "\xff\xfe\x00"})
	add("5.5.2", "a Ping of 125 bytes", clientFrame(finBit|opPing, strings.Repeat("p", 125)), staysOpen, wantedFrame{opPong, strings.Repeat("p", 125)})
	add("5.5.2", "three Pings at once", clientFrame(finBit|opPing, "1")+clientFrame(finBit|opPing, "2")+clientFrame(finBit|opPing, "3"), staysOpen, wantedFrame{opPong, "1"}, wantedFrame{opPong, "2"}, wantedFrame{opPong, "3"})
	add("5.5.3", "a Pong that nobody asked for", clientFrame(finBit|opPong, "here"), staysOpen)

	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	echo("5.6", "every byte there is, as binary", opBinary, string(every))
	echo("5.6", "text and binary keep apart", opText, "text")

	add("5.7", "the masked Hello of the RFC", "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", staysOpen, wantedFrame{opText, "Hello"})
	add("5.7", "the masked Ping of the RFC", "\x89\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", staysOpen, wantedFrame{opPong, "Hello"})

	for _, behind := range []int{10_000, 40_000, 90_000} {
		add("7.1.7", fmt.Sprintf("a frame that is wrong, with %d bytes behind it", behind), serverFrame(opText, "bare")+clientFrame(finBit|opBinary, strings.Repeat("x", behind)), 1002)
	}

	for _, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014} {
		add("7.4.1", fmt.Sprintf("a Close with %d", code), closeFrame(code, "bye"), code)
	}
	for _, code := range []int{1004, 1005, 1006, 1015} {
		add("7.4.1", fmt.Sprintf("a Close with %d, which is never sent", code), closeFrame(code, ""), 1002)
	}
	for _, code := range []int{0, 999, 1016, 1100, 2000, 2999, 5000, 65_535} {
		add("7.4.2", fmt.Sprintf("a Close with %d, which nobody has given a meaning", code), closeFrame(code, ""), 1002)
	}
	for _, code := range []int{3000, 3999, 4000, 4999} {
		add("7.4.2", fmt.Sprintf("a Close with %d", code), closeFrame(code, ""), code)
	}

	for _, good := range []string{"\x00", "\x7f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\ufffd", "\uffff", "\U00010000", "\U0010ffff", "κόσμε", "🌍🌏🌎"} {
		echo("8.1", fmt.Sprintf("the text %+q", good), opText, good)
	}
	for _, e := range [][2]string{
		{"a byte of no character", "\xff"}, {"the rest of a character without its beginning", "a\x80b"},
		{"half a character", "a\xc3"}, {"two thirds of a character", "\xe4\xb8"},
		{"NUL in two bytes", "\xc0\x80"}, {"a slash in two bytes", "\xc0\xaf"}, {"a slash in three bytes", "\xe0\x80\xaf"}, {"a slash in four bytes", "\xf0\x80\x80\xaf"},
		{"a surrogate", "\xed\xa0\x80"}, {"a character beyond U+10FFFF", "\xf4\x90\x80\x80"}, {"five bytes", "\xf8\x88\x80\x80\x80"},
		{"a wrong byte behind 30000 others", fileText(30_000) + "\xfe"},
	} {
		add("8.1", e[0]+" in a text", textMessage(e[1]), 1007)
	}
	add("8.1", "a character cut by fragments", clientFrame(opText, "\xf0\x9f")+clientFrame(0, "\x8c")+clientFrame(finBit, "\x8d"), staysOpen, wantedFrame{opText, "🌍"})
	add("8.1", "a character cut by fragments and a Ping", clientFrame(opText, "\xe4")+clientFrame(finBit|opPing, "\xff")+clientFrame(finBit, "\xb8\x96"), staysOpen, wantedFrame{opPong, "\xff"}, wantedFrame{opText, "世"})
	add("8.1", "a character that the next fragment does not end", clientFrame(opText, "\xe4\xb8")+clientFrame(finBit, "a"), 1007)
	add("8.1", "half a character in the last fragment", clientFrame(opText, "a")+clientFrame(finBit, "\xe4\xb8"), 1007)
	add("8.1", "a wrong byte, and the message goes on", clientFrame(opText, "good \xc0 bad"), 1007)
	add("8.1", "a wrong byte, and the frame goes on", clientFrame(finBit|opText, "good \xed\xa0\x80"+strings.Repeat("?", 5000))[:40], 1007)
	add("8.1", "a character cut by frames in a reason", closeFrame(1000, "\xe4\xb8"), 1007)
	add("8.1", "a wrong byte in a reason", closeFrame(1000, "bye \xff"), 1007)
	echo("8.1", "wrong bytes that are no text", opBinary, "\xc0\xed\xa0\x80")

	most := strings.Repeat("m", socketLimit)
	echo("10.4", "a message as large as one may be", opBinary, most)
	add("10.4", "a frame that announces one byte more", clientFrame(finBit|opBinary, most+"m")[:20], 1009)
	add("10.4", "a frame that announces a million terabytes", "\x82\xff\x0f\x00\x00\x00\x00\x00\x00\x00", 1009)
	add("10.4", "fragments that are too much together", clientFrame(opBinary, most[1:])+clientFrame(0, "m")+clientFrame(finBit, "m"), 1009)
	add("10.4", "fragments that are as much as may be", clientFrame(opBinary, most[1:])+clientFrame(finBit, "m"), staysOpen, wantedFrame{opBinary, most})
	return all
}
