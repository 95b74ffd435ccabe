package http1

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Inputs that would make a careless scanner work in vain: each must cost at most four looks at each byte,
// however it is cut. Looks are counted in a build with the tag lookcount only, where every other test of this
// package asserts the same of its inputs; a build without it has all of them run in one that counts.
func TestLinear(t *testing.T) {
	if !counting {
		testCounting(t)
		return
	}
	const head = "GET / HTTP/1.1\r\nHost: a\r\n"
	for _, part := range []string{
		"A:\r\n", "A:b\r\n", "A: \r\n", "A:\t\t\t\t\r\n", "host:\r\n", "Host:a\r\n", "Expect:\r\n", "expect:a\r\n", "Content-Length:\r\n", "Content-Length:1\r\n",
		"Connection:\r\n", "Connection:close\r\n", "Transfer-Encoding:\r\n", "Transfer-Encoding:chunked\r\n", "Transfer-Encoding:a\r\n",
		"A: 0123456789012345678901234567\t\r\n", "A: 01234567890123456789012345678901\r\n", "A: 0123456789012345678901234567890123456789\t\r\n",
	} {
		for n := 1; n <= MaxHeaders; n += 21 {
			judgeEveryWay(t, []byte(head+strings.Repeat(part, n)+"\r\n"), testMaxBody)
		}
	}
	for _, name := range []string{"A", "Host", "Expect", "Content-Length", "Connection", "Transfer-Encoding"} {
		for _, part := range []string{" ", "\t", "a", "\x80", ",", "a,", "ab,", " a ,", "close,", "keep-alivf,", "chunkee,", "a;b=c,", "a;b=\"\\c\",", "%41", "[", "1", ":", "1234567890123456789012345678901\t"} {
			value := strings.Repeat(part, 600/len(part))
			for _, in := range []string{value, value + "x", value + "\x00"} {
				judgeEveryWay(t, []byte(head+name+":"+in+"\r\n\r\n"), testMaxBody)
			}
		}
	}
	for _, target := range []string{"/", "/?", "http://", "ftp://", "ftp://a:", "x"} {
		for _, part := range []string{"a", "%41", "%4", "/", "1", ":", "@", "[", "?", "://"} {
			judgeEveryWay(t, []byte("GET "+target+strings.Repeat(part, 600/len(part))), testMaxBody)
		}
	}
	for _, in := range []string{"\r\n", "\r\nGET", "G / HTTP/1.0\r\n\r\n", "G x://[1:2:3:4:5:6:7::]:1 HTTP/1.0\r\n\r\n", "CONNECT [::1.2.3.4]:1 HTTP/1.0\r\n\r\n"} {
		judgeEveryWay(t, []byte(in), testMaxBody)
	}
	for _, part := range []string{"1\r\nx\r\n", "1;a=b\r\nx\r\n", "1 ; \t a = \"\\b\"\r\nx\r\n", "3\r\n\r\n\n\r\n"} {
		for _, end := range []string{"0\r\n\r\n", "0\r\n" + strings.Repeat("A:\r\n", 99) + "\r\n", "0\r\n" + strings.Repeat("A:b\r\n", 99) + "\r\n", "0\r\nA:" + strings.Repeat("\t", 900) + "\r\n\r\n"} {
			frameEveryWay(t, &Head{Chunked: true}, []byte(strings.Repeat(part, 100)+end), testMaxBody)
		}
	}
}

// testCounting runs the tests of this package in a build that counts.
func testCounting(t *testing.T) {
	// Read here, the files of that build decide too whether a result that is kept still holds.
	_, err := os.ReadDir(".")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "test", "-tags", "lookcount", "-vet=off", ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
