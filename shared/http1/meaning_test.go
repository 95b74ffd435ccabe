package http1

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContentLength(t *testing.T) {
	runJudgeCases(t, []judgeCase{
		{"none", "6.3", with(""), 0},
		{"zero", "RFC 9110, 8.6", with("Content-Length: 0\r\n"), 0},
		{"one", "RFC 9110, 8.6", with("Content-Length: 1\r\n"), 0},
		{"zeros first", "RFC 9110, 8.6", with("Content-Length: 00000000000000000000000000000007\r\n"), 0},
		{"blanks around it", "5.1", with("Content-Length:\t 5 \t\r\n"), 0},
		{"no blank before it", "5.1", with("content-length:5\r\n"), 0},
		{"the limit", "RFC 9110, 15.5.14", with("Content-Length: 1000\r\n"), 0},
		{"over the limit", "RFC 9110, 15.5.14", with("Content-Length: 1001\r\n"), 413},
		{"largest number", "RFC 9110, 8.6", with("Content-Length: 9223372036854775807\r\n"), 413},
		{"number too large", "RFC 9110, 8.6", with("Content-Length: 9223372036854775808\r\n"), 400},
		{"number of 2^64", "RFC 9110, 8.6", with("Content-Length: 18446744073709551616\r\n"), 400},
		{"number of 2^64 + 5", "RFC 9110, 8.6", with("Content-Length: 18446744073709551621\r\n"), 400},
		{"number of 60 digits", "RFC 9110, 8.6", with("Content-Length: 999999999999999999999999999999999999999999999999999999999999\r\n"), 400},
		{"empty", "RFC 9110, 8.6", with("Content-Length:\r\n"), 400},
		{"blanks", "RFC 9110, 8.6", with("Content-Length:  \r\n"), 400},
		{"plus", "RFC 9110, 8.6", with("Content-Length: +5\r\n"), 400},
		{"minus", "RFC 9110, 8.6", with("Content-Length: -5\r\n"), 400},
		{"minus zero", "RFC 9110, 8.6", with("Content-Length: -0\r\n"), 400},
		{"hexadecimal", "RFC 9110, 8.6", with("Content-Length: 0x5\r\n"), 400},
		{"letter", "RFC 9110, 8.6", with("Content-Length: 5a\r\n"), 400},
		{"byte before the digits", "RFC 9110, 8.6", with("Content-Length: 5/\r\n"), 400},
		{"byte after the digits", "RFC 9110, 8.6", with("Content-Length: 5:\r\n"), 400},
		{"fraction", "RFC 9110, 8.6", with("Content-Length: 5.0\r\n"), 400},
		{"exponent", "RFC 9110, 8.6", with("Content-Length: 5e0\r\n"), 400},
		{"underscore", "RFC 9110, 8.6", with("Content-Length: 1_0\r\n"), 400},
		{"quotes", "RFC 9110, 8.6", with("Content-Length: \"5\"\r\n"), 400},
		{"blank inside", "RFC 9110, 8.6", with("Content-Length: 5 5\r\n"), 400},
		{"list", "6.3", with("Content-Length: 5, 5\r\n"), 400},
		{"list that differs", "6.3", with("Content-Length: 5, 6\r\n"), 400},
		{"comma at the end", "6.3", with("Content-Length: 5,\r\n"), 400},
		{"wide digit", "RFC 9110, 8.6", with("Content-Length: \xef\xbc\x95\r\n"), 400},
		{"two that are equal", "6.3", with("Content-Length: 5\r\nContent-Length: 5\r\n"), 0},
		{"three that are equal", "6.3", with("Content-Length: 5\r\nContent-Length:5 \r\nCONTENT-LENGTH:\t5\r\n"), 0},
		{"two that differ", "6.3", with("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
		{"two that differ as text", "6.3", with("Content-Length: 5\r\nContent-Length: 05\r\n"), 400},
		{"two of which the second is empty", "6.3", with("Content-Length: 5\r\nContent-Length:\r\n"), 400},
		{"two of which the first is empty", "6.3", with("Content-Length:\r\nContent-Length: 5\r\n"), 400},
		{"three of which the last differs", "6.3", with("Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: 6\r\n"), 400},
		{"two that are equal and malformed", "6.3", with("Content-Length: x\r\nContent-Length: x\r\n"), 400},
		{"in 1.0", "6.3", with10("Content-Length: 5\r\n"), 0},
		{"malformed in 1.0", "6.3", with10("Content-Length: 5, 5\r\n"), 400},
		{"names that nearly match", "RFC 9110, 8.6", with("Content-Lengths: x\r\nContent-Lengtg: x\r\nContent_Length: x\r\nContent-Type: x\r\nDontent-Length: x\r\n"), 0},
	})
	for text, want := range map[string]int64{"0": 0, "7": 7, "0010": 10, "9223372036854775807": math.MaxInt64} {
		got := judgeEveryWay(t, []byte(with("Content-Length: "+text+"\r\n")), math.MaxInt64)
		require.Equal(t, want, got.head.ContentLength)
		require.False(t, got.head.Chunked)
	}
	for digit := range 10 {
		// Around 2^63, at the digit before the last and at the last.
		text := "922337203685477580" + strconv.Itoa(digit)
		got := judgeEveryWay(t, []byte(with("Content-Length: "+text+"\r\n")), math.MaxInt64)
		require.Equal(t, digit > 7, got.fault.Status == 400, text)
	}
	got := judge(t, []byte(with("Content-Length: 1\r\n")), 0, len(with("Content-Length: 1\r\n")))
	require.Equal(t, 413, got.fault.Status)
}

func TestTransferEncoding(t *testing.T) {
	runJudgeCases(t, []judgeCase{
		{"chunked", "6.1", with("Transfer-Encoding: chunked\r\n"), 0},
		{"in capitals", "7", with("TRANSFER-ENCODING: CHUNKED\r\n"), 0},
		{"mixed, without a blank", "7", with("transfer-encoding:cHuNkEd\r\n"), 0},
		{"blanks around it", "5.1", with("Transfer-Encoding: \tchunked\t \r\n"), 0},
		{"empty elements", "RFC 9110, 5.6.1", with("Transfer-Encoding: , ,chunked,\t,\r\n"), 0},
		{"empty", "6.1", with("Transfer-Encoding:\r\n"), 400},
		{"blanks", "6.1", with("Transfer-Encoding: \t \r\n"), 400},
		{"commas alone", "RFC 9110, 5.6.1", with("Transfer-Encoding: , ,\r\n"), 400},
		{"chunked twice", "7.1", with("Transfer-Encoding: chunked, chunked\r\n"), 400},
		{"chunked not last", "6.3", with("Transfer-Encoding: chunked, gzip\r\n"), 400},
		{"chunked in the middle", "6.3", with("Transfer-Encoding: gzip, chunked, gzip\r\n"), 400},
		{"chunked twice around another", "6.3", with("Transfer-Encoding: chunked, gzip, chunked\r\n"), 400},
		{"unknown", "6.1", with("Transfer-Encoding: gzip\r\n"), 501},
		{"unknown before chunked", "6.1", with("Transfer-Encoding: gzip, chunked\r\n"), 501},
		{"two unknown before chunked", "6.1", with("Transfer-Encoding: a,b,chunked\r\n"), 501},
		{"identity, which is gone", "7", with("Transfer-Encoding: identity\r\n"), 501},
		{"name that begins alike", "7", with("Transfer-Encoding: chunke\r\n"), 501},
		{"name that goes on", "7", with("Transfer-Encoding: chunkedd\r\n"), 501},
		{"unknown of chunked's length", "7", with("Transfer-Encoding: chunkee\r\n"), 501},
		{"unknown with a parameter", "7", with("Transfer-Encoding: gzip;q=1, chunked\r\n"), 501},
		{"unknown with parameters and blanks", "7", with("Transfer-Encoding: gzip ; a = b\t;c=\"d,\\\"e\" , chunked\r\n"), 501},
		{"chunked in a quoted parameter", "7", with("Transfer-Encoding: a;b=\"c, chunked\"\r\n"), 501},
		{"chunked with a parameter", "7.1", with("Transfer-Encoding: chunked;q=1\r\n"), 400},
		{"chunked with a parameter after another", "7.1", with("Transfer-Encoding: gzip, chunked;a=b\r\n"), 400},
		{"chunked with a semicolon", "7", with("Transfer-Encoding: chunked;\r\n"), 400},
		{"unknown with a semicolon", "7", with("Transfer-Encoding: gzip;\r\n"), 400},
		{"parameter without a value", "7", with("Transfer-Encoding: gzip;a\r\n"), 400},
		{"parameter with an empty value", "7", with("Transfer-Encoding: gzip;a=\r\n"), 400},
		{"parameter without a name", "7", with("Transfer-Encoding: gzip;=a\r\n"), 400},
		{"parameter with an open quote", "7", with("Transfer-Encoding: gzip;a=\"b\r\n"), 400},
		{"parameter with an open pair", "7", with("Transfer-Encoding: gzip;a=\"b\\\r\n"), 400},
		{"parameter without a coding", "7", with("Transfer-Encoding: ;a=b\r\n"), 400},
		{"text after a quoted value", "7", with("Transfer-Encoding: gzip;a=\"b\"c\r\n"), 400},
		{"quoted coding", "7", with("Transfer-Encoding: \"chunked\"\r\n"), 400},
		{"two words", "7", with("Transfer-Encoding: gzip chunked\r\n"), 400},
		{"chunked and a word", "7", with("Transfer-Encoding: chunked x\r\n"), 400},
		{"no token", "7", with("Transfer-Encoding: chun(ked\r\n"), 400},
		{"byte beyond ASCII", "7", with("Transfer-Encoding: chunked\xa0\r\n"), 400},
		{"vertical tab", "RFC 9110, 5.5", with("Transfer-Encoding: ▸\vchunked\r\n"), 400},
		{"two lines of chunked", "7.1", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
		{"two lines, chunked first", "6.3", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n"), 400},
		{"two lines, chunked last", "6.1", with("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), 501},
		{"two lines, one empty", "6.1", with("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n"), 400},
		{"two lines, the first empty", "6.1", with("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n"), 400},
		{"two lines, one of commas", "6.1", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: ,\r\n"), 400},
		{"three lines", "6.1", with("Transfer-Encoding: a\r\nTransfer-Encoding: b\r\nTransfer-Encoding: chunked\r\n"), 501},
		{"malformed after unknown", "6.1", with("Transfer-Encoding: gzip\r\nTransfer-Encoding: \"\r\n"), 400},
		{"malformed before unknown", "6.1", with("Transfer-Encoding: \"\r\nTransfer-Encoding: gzip\r\n"), 400},
		{"beside Content-Length", "6.3", with("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400},
		{"after Content-Length", "6.3", with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"), 400},
		{"unknown beside Content-Length", "6.3", with("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"), 400},
		{"in 1.0", "6.1", with10("Transfer-Encoding: chunked\r\n"), 400},
		{"unknown in 1.0", "6.1", with10("Transfer-Encoding: gzip\r\n"), 400},
		{"with GET", "RFC 9110, 9.3.1", "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 0},
		{"names that nearly match", "6.1", with("Transfer-Encodings: x;\r\nTransfer-Encodinh: x;\r\nTransfer_Encoding: x;\r\nContent-Encoding: gzip\r\n"), 0},
	})
}

// RFC 9112, 9.3 and 9.6; RFC 9110, 7.6.1.
func TestConnection(t *testing.T) {
	for _, c := range []struct {
		lines           string
		keep, keepIn1_0 bool
	}{
		{"", true, false},
		{"Connection: close\r\n", false, false},
		{"Connection: keep-alive\r\n", true, true},
		{"CONNECTION:CLOSE\r\n", false, false},
		{"connection: Keep-Alive\t\r\n", true, true},
		{"Connection: close, keep-alive\r\n", false, false},
		{"Connection: keep-alive, close\r\n", false, false},
		{"Connection: keep-alive\r\nConnection: close\r\n", false, false},
		{"Connection: close\r\nConnection: keep-alive\r\n", false, false},
		{"Connection: \r\nConnection: keep-alive\r\n", true, true},
		{"Connection:\r\n", true, false},
		{"Connection: ,,\t,\r\n", true, false},
		{"Connection: , \tkeep-alive ,\r\n", true, true},
		{"Connection: x,\tclose\t,y\r\n", false, false},
		{"Connection: upgrade, x-close, closed, clos, xclose\r\n", true, false},
		{"Connection: close x\r\n", true, false},
		{"Connection: cl ose\r\n", true, false},
		{"Connection: \"close\"\r\n", true, false},
		{"Connection: close;q=1\r\n", true, false},
		{"Connection: keepalive, keep_alive, keep-alives\r\n", true, false},
		{"Connection: (\\,\"\xff,keep-alive\r\n", true, true},
		{"Proxy-Connection: close\r\n", true, false},
		{"Connectiom: close\r\nKonnection: close\r\n", true, false},
	} {
		got := judgeEveryWay(t, []byte(with(c.lines)), testMaxBody)
		require.Equal(t, Complete, got.verdict, c.lines)
		require.Equal(t, c.keep, got.head.KeepAlive, c.lines)
		got = judgeEveryWay(t, []byte(with10(c.lines)), testMaxBody)
		require.Equal(t, Complete, got.verdict, c.lines)
		require.Equal(t, c.keepIn1_0, got.head.KeepAlive, c.lines)
	}
}

func TestExpect(t *testing.T) {
	runJudgeCases(t, []judgeCase{
		{"100-continue", "RFC 9110, 10.1.1", with("Expect: 100-continue\r\nContent-Length: 5\r\n"), 0},
		{"in capitals", "RFC 9110, 10.1.1", with("EXPECT:\t100-CONTINUE \r\nContent-Length: 5\r\n"), 0},
		{"without a body", "RFC 9110, 10.1.1", with("Expect: 100-continue\r\n"), 0},
		{"another", "RFC 9110, 15.5.18", with("Expect: 200-ok\r\n"), 417},
		{"empty", "RFC 9110, 5.6.1.2", with("Expect:\r\n"), 0},
		{"empty members", "RFC 9110, 5.6.1.2", with("Expect: , 100-continue,\t, \r\nContent-Length: 5\r\n"), 0},
		{"empty members alone", "RFC 9110, 5.6.1.2", with("Expect: , ,\r\n"), 0},
		{"empty members and another", "RFC 9110, 15.5.18", with("Expect: , ,more\r\n"), 417},
		{"an empty line, and another", "RFC 9110, 15.5.18", with("Expect:\r\nExpect: more\r\n"), 417},
		{"longer", "RFC 9110, 15.5.18", with("Expect: 100-continued\r\n"), 417},
		{"shorter", "RFC 9110, 15.5.18", with("Expect: 100-continu\r\n"), 417},
		{"with a value", "RFC 9110, 10.1.1", with("Expect: 100-continue=yes\r\n"), 417},
		{"with a parameter", "RFC 9110, 10.1.1", with("Expect: 100-continue;a\r\n"), 417},
		{"with another", "RFC 9110, 15.5.18", with("Expect: 100-continue, more\r\n"), 417},
		{"list of itself", "RFC 9110, 5.3", with("Expect: 100-continue, 100-CONTINUE\r\n"), 0},
		{"two lines", "RFC 9110, 5.3", with("Expect: 100-continue\r\nExpect: 100-continue\r\n"), 0},
		{"a comma in quotes", "RFC 9110, 15.5.18", with("Expect: a=\"b,100-continue\"\r\n"), 417},
		{"without its commas", "RFC 9110, 15.5.18", with("Expect: 100-continue 100-continue\r\n"), 417},
		{"another line", "RFC 9110, 15.5.18", with("Expect: 100-continue\r\nExpect: more\r\n"), 417},
		{"in 1.0", "RFC 9110, 10.1.1", with10("Expect: 100-continue\r\nContent-Length: 5\r\n"), 0},
		{"another and itself in 1.0", "RFC 9110, 10.1.1", with10("Expect: more, 100-continue\r\n"), 0},
		{"another in 1.0", "RFC 9110, 10.1.1", with10("Expect: more\r\n"), 0},
		{"names that nearly match", "RFC 9110, 10.1.1", with("Expects: x\r\nExpecu: x\r\nAccept: x\r\n"), 0},
	})
	const expect = "Expect: 100-continue\r\n"
	for in, want := range map[string]bool{
		with(expect + "Content-Length: 1\r\n"):                   true,
		with("Content-Length: 1\r\n" + expect):                   true,
		with(expect + "Transfer-Encoding: chunked\r\n"):          true,
		with(expect + "Content-Length: 0\r\n"):                   false,
		with(expect):                                             false,
		with("Content-Length: 1\r\n"):                            false,
		with("Content-Length: 1\r\nExpect:\r\n"):                 false,
		with("Content-Length: 1\r\nExpect: ,\r\n"):               false,
		with("Content-Length: 1\r\nExpect: ,\r\n" + expect):      true,
		with(expect + "Content-Length: 1\r\n" + expect):          true,
		with("Expect: ,100-continue ,\r\nContent-Length: 1\r\n"): true,
		with10(expect + "Content-Length: 1\r\n"):                 false,
	} {
		require.Equal(t, want, judgeEveryWay(t, []byte(in), testMaxBody).head.ExpectContinue, in)
	}
}
