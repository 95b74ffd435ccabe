package http1

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestLine(t *testing.T) {
	const host = "\r\nHost: a\r\n\r\n"
	runJudgeCases(t, []judgeCase{
		{"plain", "3", "GET / HTTP/1.1" + host, 0},
		{"method of one byte", "3.1", "G / HTTP/1.1" + host, 0},
		{"method of every token byte", "RFC 9110, 5.6.2", "!#$%&'*+-.^_`|~0189ABYZabyz / HTTP/1.1" + host, 0},
		{"unknown method", "3.1", "BREW / HTTP/1.1" + host, 0},
		{"method in lower case is another method", "RFC 9110, 9.1", "get / HTTP/1.1" + host, 0},
		{"no method", "3.1", "▸ / HTTP/1.1" + host, 400},
		{"tab before the method", "3", "▸\tGET / HTTP/1.1" + host, 400},
		{"method with a slash", "RFC 9110, 5.6.2", "GE▸/T / HTTP/1.1" + host, 400},
		{"method with a colon", "RFC 9110, 5.6.2", "GET▸: / HTTP/1.1" + host, 400},
		{"method with a zero byte", "RFC 9110, 5.6.2", "GE▸\x00T / HTTP/1.1" + host, 400},
		{"method with a byte beyond ASCII", "RFC 9110, 5.6.2", "GE▸\xc3\x89 / HTTP/1.1" + host, 400},
		{"tab after the method", "3", "GET▸\t/ HTTP/1.1" + host, 400},
		{"two spaces after the method", "3", "GET ▸ / HTTP/1.1" + host, 400},
		{"method alone", "3", "GET▸\r\n\r\n", 400},
		{"method and bare line feed", "2.2", "GET▸\n\n", 400},
		{"no target", "3", "GET ▸\r\n\r\n", 400},
		{"two spaces after the target", "3", "GET / ▸ HTTP/1.1" + host, 400},
		{"tab after the target", "3", "GET /▸\tHTTP/1.1" + host, 400},
		{"no version, as in HTTP/0.9", "3", "GET /▸\r\n", 400},
		{"space and no version", "3", "GET / ▸\r\n", 400},
		{"space after the version", "3", "GET / HTTP/1.1▸ \r\nHost: a\r\n\r\n", 400},
		{"four words", "3", "GET / HTTP/1.1▸ HTTP/1.1" + host, 400},
		{"space in the target", "3.2", "GET /a ▸b HTTP/1.1" + host, 400},

		{"one empty line first", "2.2", "\r\nGET / HTTP/1.1" + host, 0},
		{"two empty lines first", "2.2", "\r\n▸\r\nGET / HTTP/1.1" + host, 400},
		{"bare line feed first", "2.2", "▸\nGET / HTTP/1.1" + host, 400},
		{"bare line feed after an empty line", "2.2", "\r\n▸\nGET / HTTP/1.1" + host, 400},
		{"bare carriage return first", "2.2", "\r▸GET / HTTP/1.1" + host, 400},
		{"two carriage returns first", "2.2", "\r▸\r\nGET / HTTP/1.1" + host, 400},

		{"bare line feed after the version", "2.2", "GET / HTTP/1.1▸\nHost: a\r\n\r\n", 400},
		{"bare carriage return after the version", "2.2", "GET / HTTP/1.1\r▸Host: a\r\n\r\n", 400},
		{"two carriage returns after the version", "2.2", "GET / HTTP/1.1\r▸\r\nHost: a\r\n\r\n", 400},
		{"blank after the request line", "2.2", "GET / HTTP/1.1\r\n▸ Host: a\r\n\r\n", 400},
	})
}

func TestVersion(t *testing.T) {
	cases := []judgeCase{
		{"1.0 without Host", "RFC 9112, 3.2", "GET / HTTP/1.0\r\n\r\n", 0},
		{"1.0 with Host", "2.3", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", 0},
		{"lower case", "2.3", "GET / ▸http/1.1\r\nHost: a\r\n\r\n", 400},
		{"one letter in lower case", "2.3", "GET / HTT▸p/1.1\r\nHost: a\r\n\r\n", 400},
		{"another name", "2.3", "GET / HTTP▸S/1.1\r\nHost: a\r\n\r\n", 400},
		{"no slash", "2.3", "GET / HTTP▸ 1.1\r\nHost: a\r\n\r\n", 400},
		{"no digits", "2.3", "GET / HTTP/▸\r\nHost: a\r\n\r\n", 400},
		{"no minor", "2.3", "GET / HTTP/1▸\r\nHost: a\r\n\r\n", 400},
		{"no minor after the dot", "2.3", "GET / HTTP/1.▸\r\nHost: a\r\n\r\n", 400},
		{"no major", "2.3", "GET / HTTP/▸.1\r\nHost: a\r\n\r\n", 400},
		{"comma", "2.3", "GET / HTTP/1▸,1\r\nHost: a\r\n\r\n", 400},
		{"two digits in the minor", "2.3", "GET / HTTP/1.1▸0\r\nHost: a\r\n\r\n", 400},
		{"two digits in the major", "2.3", "GET / HTTP/1▸1.1\r\nHost: a\r\n\r\n", 400},
		{"sign", "2.3", "GET / HTTP/▸+1.1\r\nHost: a\r\n\r\n", 400},
		{"hexadecimal digit", "2.3", "GET / HTTP/1.▸a\r\nHost: a\r\n\r\n", 400},
		{"byte before the digits", "2.3", "GET / HTTP/▸/.1\r\nHost: a\r\n\r\n", 400},
		{"byte after the digits", "2.3", "GET / HTTP/▸:.1\r\nHost: a\r\n\r\n", 400},
		{"HTTP/2 preface", "RFC 9113, 3.4", "PRI ▸* HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
	}
	for _, major := range "023456789" {
		cases = append(cases, judgeCase{"major " + string(major), "RFC 9110, 15.6.6", "GET / HTTP/" + string(major) + ".0\r\n\r\n", 505})
	}
	for _, minor := range "23456789" {
		cases = append(cases,
			judgeCase{"minor " + string(minor), "RFC 9110, 2.5", "GET / HTTP/1." + string(minor) + "\r\nHost: a\r\n\r\n", 0},
			judgeCase{"minor " + string(minor) + " without Host", "3.2", "GET / HTTP/1." + string(minor) + "\r\n\r\n", 400})
	}
	runJudgeCases(t, cases)
}

func TestFieldLines(t *testing.T) {
	runJudgeCases(t, []judgeCase{
		{"no value", "5", with("A:\r\n"), 0},
		{"blanks for a value", "5", with("A: \t \r\n"), 0},
		{"no blank", "5", with("A:b\r\n"), 0},
		{"many blanks", "5", with("A: \t  b c\t \r\n"), 0},
		{"tab between words", "RFC 9110, 5.5", with("A: b\tc\r\n"), 0},
		{"tabs in a long value", "RFC 9110, 5.5", with("A: " + strings.Repeat("0123456\t\t\t", 20) + "\r\n"), 0},
		{"fault after tabs in a long value", "RFC 9110, 5.5", with("A: " + strings.Repeat("0123456\t\t\t", 20) + "▸\x01\r\n"), 400},
		{"colon in a value", "5", with("A: b:c\r\n"), 0},
		{"bytes beyond ASCII in a value", "RFC 9110, 5.5", with("A: \x80\x89\x8d\x8a\xff\xc3\xa9\r\n"), 0},
		{"name of one byte", "5.1", with("a: b\r\n"), 0},
		{"name of every token byte", "RFC 9110, 5.6.2", with("!#$%&'*+-.^_`|~0189ABYZabyz: b\r\n"), 0},
		{"same name twice", "RFC 9110, 5.3", with("A: b\r\nA: c\r\n"), 0},
		{"no name", "5.1", with("▸: b\r\n"), 400},
		{"space before the colon", "5.1", with("A▸ : b\r\n"), 400},
		{"tab before the colon", "5.1", with("A▸\t: b\r\n"), 400},
		{"space in a name", "5.1", with("A▸ b: c\r\n"), 400},
		{"no colon", "5", with("A▸\r\nB: c\r\n"), 400},
		{"no colon before a bare line feed", "5", with("A▸\nB: c\r\n"), 400},
		{"name with a separator", "RFC 9110, 5.6.2", with("A▸(b): c\r\n"), 400},
		{"name that begins with a separator", "RFC 9110, 5.6.2", with("▸\"A\": c\r\n"), 400},
		{"name with a zero byte", "RFC 9110, 5.6.2", with("A▸\x00: c\r\n"), 400},
		{"name with a byte beyond ASCII", "RFC 9110, 5.6.2", with("A▸\xe9: c\r\n"), 400},
		{"name with DEL", "RFC 9110, 5.6.2", with("A▸\x7f: c\r\n"), 400},
		{"space before the first name", "2.2", "GET / HTTP/1.1\r\n▸ A: b\r\nHost: a\r\n\r\n", 400},
		{"tab before the first name", "2.2", "GET / HTTP/1.1\r\n▸\tA: b\r\nHost: a\r\n\r\n", 400},
		{"fold with a space", "5.2", with("A: b\r\n▸ c\r\n"), 400},
		{"fold with a tab", "5.2", with("A: b\r\n▸\tc\r\n"), 400},
		{"fold of an empty value", "5.2", with("A:\r\n▸ c\r\n"), 400},
		{"fold with blanks alone", "5.2", with("A: b\r\n▸ \r\n"), 400},
		{"zero byte in a value", "RFC 9110, 5.5", with("A: b▸\x00c\r\n"), 400},
		{"zero byte for a value", "RFC 9110, 5.5", with("A:▸\x00\r\n"), 400},
		{"DEL in a value", "RFC 9110, 5.5", with("A: b▸\x7fc\r\n"), 400},
		{"escape in a value", "RFC 9110, 5.5", with("A: ▸\x1b[0m\r\n"), 400},
		{"vertical tab in a value", "RFC 9110, 5.5", with("A: b▸\vc\r\n"), 400},
		{"bare carriage return in a value", "2.2", with("A: b\r▸c\r\n"), 400},
		{"two carriage returns after a value", "2.2", with("A: b\r▸\r\n"), 400},
		{"bare line feed after a value", "2.2", with("A: b▸\nC: d\r\n"), 400},
		{"bare line feed after blanks", "2.2", with("A: ▸\nC: d\r\n"), 400},
		{"bare line feed after a colon", "2.2", with("A:▸\nC: d\r\n"), 400},
		{"bare line feed as the last line", "2.2", "GET / HTTP/1.1\r\nHost: a\r\n▸\n", 400},
		{"bare carriage return as the last line", "2.2", "GET / HTTP/1.1\r\nHost: a\r\n\r▸X: y\r\n\r\n", 400},
		{"carriage return twice as the last line", "2.2", "GET / HTTP/1.1\r\nHost: a\r\n\r▸\r\n", 400},
	})
}

// RFC 9110, 5.6.2 and 5.5; RFC 3986, 3.3 and 3.4: every byte in every place, and in every one of a
// word's eight places.
func TestEveryByte(t *testing.T) {
	const (
		alphanumeric = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		token        = alphanumeric + "!#$%&'*+-.^_`|~"
		path         = alphanumeric + "-._~!$&'()*+,;=:@/"
	)
	for c := range 256 {
		s := string([]byte{byte(c)})
		value := c == '\t' || c >= 0x20 && c < 0x7f || c > 0x7f
		check := func(before, after string, ok bool) {
			t.Helper()
			in := []byte(before + s + after)
			got := judge(t, in, testMaxBody, len(in))
			requireSame(t, in, got, judge(t, in, testMaxBody, len(before), len(before)+1, len(in)))
			if ok {
				require.Equal(t, Complete, got.verdict, "%q: %s", in, got.fault.Reason)
				return
			}
			require.Equal(t, Faulty, got.verdict, "%q", in)
			require.Equal(t, 400, got.fault.Status, "%q", in)
			require.Equal(t, len(before), got.at, "%q", in)
		}
		if s != " " {
			check("GE", "T / HTTP/1.1\r\nHost: a\r\n\r\n", strings.Contains(token, s))
			if s != "%" {
				check("GET /a", "b HTTP/1.1\r\nHost: a\r\n\r\n", strings.Contains(path+"?", s))
				check("GET /?a", "b HTTP/1.1\r\nHost: a\r\n\r\n", strings.Contains(path+"?", s))
			}
		}
		if s != ":" {
			check("GET / HTTP/1.1\r\nHost: a\r\nA", "b: c\r\n\r\n", strings.Contains(token, s))
		}
		if s != "\r" {
			check("GET / HTTP/1.1\r\nHost: a\r\n", "b: c\r\n\r\n", strings.Contains(token, s))
			for n := range 9 {
				check("GET / HTTP/1.1\r\nHost: a\r\nA: "+strings.Repeat("x", n), "3456789\r\n\r\n", value)
				check("GET / HTTP/1.1\r\nHost: a\r\nA: "+strings.Repeat("x", 60+n), "\r\n\r\n", value)
			}
		}
	}
}

// Everything that a valid head says.
func TestHead(t *testing.T) {
	for _, c := range []struct {
		in                         string
		method, target, path       string
		query, host, transfer      string
		start, fieldsStart, fields int
		want                       Head
	}{
		{in: "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n",
			method: "GET", target: "/", path: "/", host: "127.0.0.1:8080", fieldsStart: 16, fields: 1,
			want: Head{Minor: 1, KeepAlive: true}},
		{in: "GET / HTTP/1.0\r\n\r\n",
			method: "GET", target: "/", path: "/", fieldsStart: 16},
		{in: "\r\nPUT /a%20b?c=%20&d HTTP/1.9\r\nA: b\r\nhOST:\t[::1]:80 \t\r\nCONTENT-length: 007\r\nEXPECT:100-Continue\r\n\r\n",
			method: "PUT", target: "/a%20b?c=%20&d", path: "/a%20b", query: "c=%20&d", host: "[::1]:80", start: 2, fieldsStart: 31, fields: 4,
			want: Head{Minor: 1, KeepAlive: true, Escaped: true, ContentLength: 7, ExpectContinue: true}},
		{in: "GET /a?b%20c HTTP/1.1\r\nHost:\r\n\r\n",
			method: "GET", target: "/a?b%20c", path: "/a", query: "b%20c", fieldsStart: 23, fields: 1,
			want: Head{Minor: 1, KeepAlive: true}},
		{in: "GET /? HTTP/1.1\r\nHost: a\r\n\r\n",
			method: "GET", target: "/?", path: "/", host: "a", fieldsStart: 17, fields: 1,
			want: Head{Minor: 1, KeepAlive: true}},
		{in: "POST http://b:8/c?d HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,Chunked,\r\nConnection: close\r\n\r\n",
			method: "POST", target: "http://b:8/c?d", path: "/c", query: "d", host: "b:8", transfer: "Transfer-Encoding: ,Chunked,\r\n", fieldsStart: 30, fields: 3,
			want: Head{Minor: 1, Form: AbsoluteForm, Chunked: true}},
		{in: "GET ftp://me:pw@b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
			method: "GET", target: "ftp://me:pw@b", host: "b", fieldsStart: 28, fields: 1,
			want: Head{Form: AbsoluteForm, KeepAlive: true}},
		{in: "GET http://b?c HTTP/1.1\r\nHost: a\r\n\r\n",
			method: "GET", target: "http://b?c", query: "c", host: "b", fieldsStart: 25, fields: 1,
			want: Head{Minor: 1, Form: AbsoluteForm, KeepAlive: true}},
		{in: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
			method: "OPTIONS", target: "*", host: "a", fieldsStart: 20, fields: 1,
			want: Head{Minor: 1, Form: AsteriskForm, KeepAlive: true}},
		{in: "OPTIONS http://b HTTP/1.1\r\nHost: a\r\n\r\n",
			method: "OPTIONS", target: "http://b", host: "b", fieldsStart: 27, fields: 1,
			want: Head{Minor: 1, Form: AsteriskForm, KeepAlive: true}},
		{in: "OPTIONS http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
			method: "OPTIONS", target: "http://b/", path: "/", host: "b", fieldsStart: 28, fields: 1,
			want: Head{Minor: 1, Form: AbsoluteForm, KeepAlive: true}},
		{in: "OPTIONS http://b? HTTP/1.1\r\nHost: a\r\n\r\n",
			method: "OPTIONS", target: "http://b?", host: "b", fieldsStart: 28, fields: 1,
			want: Head{Minor: 1, Form: AbsoluteForm, KeepAlive: true}},
	} {
		in := []byte(c.in)
		got := judgeEveryWay(t, append(in, "GET "...), testMaxBody)
		require.Equal(t, Complete, got.verdict, "%q: %s", in, got.fault.Reason)
		h := got.head
		require.Equal(t, c.method, string(h.Method.Of(in)), c.in)
		require.Equal(t, c.target, string(h.Target.Of(in)), c.in)
		require.Equal(t, c.path, string(h.Path.Of(in)), c.in)
		require.Equal(t, c.query, string(h.Query.Of(in)), c.in)
		require.Equal(t, c.host, string(h.Host.Of(in)), c.in)
		require.Equal(t, c.transfer, string(h.TransferEncoding.Of(in)), c.in)
		h.Method, h.Target, h.Path, h.Query, h.Host, h.TransferEncoding = Span{}, Span{}, Span{}, Span{}, Span{}, Span{}
		c.want.Start, c.want.Length, c.want.HeaderStart, c.want.Headers = c.start, len(in), c.fieldsStart, c.fields
		require.Equal(t, c.want, h, c.in)
	}
}

func TestDefaultPath(t *testing.T) {
	require.Equal(t, "/", (&Head{Form: OriginForm}).DefaultPath())
	require.Equal(t, "/", (&Head{Form: AbsoluteForm}).DefaultPath())
	require.Equal(t, "*", (&Head{Form: AsteriskForm}).DefaultPath())
}

// RFC 9110, 2.3; RFC 9112, 2.2 and 3: the limits pass, and the byte beyond them is the fault, unless it
// is one by itself.
func TestHeadLimit(t *testing.T) {
	const rest = " / HTTP/1.1\r\nHost: a\r\n\r\n"
	fill := func(before, after string, total int) string {
		return before + strings.Repeat("x", total-len(before)-len(after)) + after
	}
	for name, parts := range map[string][2]string{
		"method": {"M", rest},
		"value":  {"GET / HTTP/1.1\r\nHost: a\r\nA: ", "\r\n\r\n"},
		"name":   {"GET / HTTP/1.1\r\nHost: a\r\nA", ": b\r\n\r\n"},
		"blanks": {"GET / HTTP/1.1\r\nHost: a\r\nA: b", "\t\t\t\t\t\t\t\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []string{"", "\r\n"} {
				limit := len(before) + MaxHead
				start := before + parts[0]
				whole := fill(start, parts[1], limit)
				require.Equal(t, Complete, judgeEveryWay(t, []byte(whole), testMaxBody).verdict)

				got := judgeEveryWay(t, []byte(fill(start, parts[1], limit+1)), testMaxBody)
				require.Equal(t, 431, got.fault.Status)
				require.Equal(t, limit, got.at)

				// Without an end in sight; and with a fault at the byte before the limit's, at it, after it.
				endless := []byte(start + strings.Repeat("x", MaxHead+100))
				got = judge(t, endless, testMaxBody, len(endless))
				require.Equal(t, 431, got.fault.Status)
				require.Equal(t, limit, got.at)
				for n, want := range map[int]int{limit - 1: 400, limit: 400, limit + 1: 431} {
					bad := []byte(string(endless))
					bad[n] = 0
					got = judgeEveryWay(t, bad, testMaxBody)
					require.Equal(t, want, got.fault.Status)
					require.Equal(t, min(n, limit), got.at)
				}
			}
		})
	}
	t.Run("before meaning", func(t *testing.T) {
		in := fill("GET / HTTP/2.0\r\nA: ", "\r\n\r\n", MaxHead)
		require.Equal(t, 505, judge(t, []byte(in), 0, len(in)).fault.Status)
		in = fill("GET / HTTP/2.0\r\nA: ", "\r\n\r\n", MaxHead+1)
		require.Equal(t, 431, judge(t, []byte(in), 0, len(in)).fault.Status)
	})
	t.Run("beside the target's", func(t *testing.T) {
		in := []byte(fill("M", " /", MaxHead-MaxTarget+1) + strings.Repeat("x", MaxTarget+100))
		got := judge(t, in, testMaxBody, len(in))
		require.Equal(t, 414, got.fault.Status)
		require.Equal(t, MaxHead, got.at)
		in = append([]byte("M"), in...)
		require.Equal(t, 431, judge(t, in, testMaxBody, len(in)).fault.Status)
	})
}

func TestHeaderLimit(t *testing.T) {
	lines := func(n int) string {
		return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("A: b\r\n", n-1)
	}
	runJudgeCases(t, []judgeCase{
		{"none", "RFC 9110, 5.4", "GET / HTTP/1.0\r\n\r\n", 0},
		{"63", "RFC 9110, 5.4", lines(63) + "\r\n", 0},
		{"64", "RFC 9110, 5.4", lines(64) + "\r\n", 0},
		{"65", "RFC 9110, 5.4", lines(64) + "▸C: d\r\n\r\n", 431},
		{"a fault in the 64th", "5", lines(64) + "▸ C: d\r\n\r\n", 400},
		{"a blank for the 65th", "5.2", lines(64) + "▸ c\r\n\r\n", 400},
		{"no name in the 65th", "5.1", lines(64) + "▸: d\r\n\r\n", 400},
		{"no token in the 65th", "5.1", lines(64) + "▸(: d\r\n\r\n", 400},
	})
}

func TestTargetLimit(t *testing.T) {
	for _, c := range []struct{ name, method, begin, fill, end string }{
		{"path", "GET", "/", "x", ""},
		{"query", "GET", "/?", "x", ""},
		{"beyond whole escapes", "GET", "/", "%41", ""},
		{"beyond a percent sign", "GET", "/xx", "%41", ""},
		{"beyond half an escape", "GET", "/x", "%41", ""},
		{"authority", "GET", "http://", "x", ""},
		{"user information", "GET", "ftp://", "x", "@a"},
		{"user information like a port", "GET", "ftp://a:", "9", "@a"},
		{"authority-form", "CONNECT", "", "x", ":1"},
		{"port", "CONNECT", "a:", "0", "1"},
		{"scheme", "GET", "s", "s", "://"},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := MaxTarget - len(c.begin) - len(c.end)
			target := c.begin + strings.Repeat(c.fill, room/len(c.fill)) + strings.Repeat("x", room%len(c.fill)) + c.end
			got := judgeEveryWay(t, []byte(c.method+" "+target+" HTTP/1.1\r\nHost: a\r\n\r\n"), testMaxBody)
			if c.method == "CONNECT" {
				require.Equal(t, 405, got.fault.Status, got.fault.Reason)
			} else {
				require.Equal(t, Complete, got.verdict, got.fault.Reason)
			}

			endless := []byte(c.method + " " + c.begin + strings.Repeat(c.fill, MaxTarget+10))
			got = judge(t, endless, testMaxBody, len(endless))
			require.Equal(t, 414, got.fault.Status, got.fault.Reason)
			require.Equal(t, len(c.method)+1+MaxTarget, got.at)
			requireSame(t, endless, got, judgeEveryWay(t, endless[:got.at+1], testMaxBody))

			endless[got.at] = '#'
			got = judge(t, endless, testMaxBody, len(endless))
			require.Equal(t, 400, got.fault.Status, got.fault.Reason)
			require.Equal(t, len(c.method)+1+MaxTarget, got.at)
		})
	}
}

// DESIGN: the order in which faults of meaning are judged.
func TestOrderOfMeaning(t *testing.T) {
	const (
		version  = "HTTP/2.0"
		host     = "Host: a b\r\n"
		framing  = "Content-Length: 5, 5\r\n"
		coding   = "Transfer-Encoding: gzip\r\n"
		expect   = "Expect: more\r\n"
		tooLarge = "Content-Length: 1001\r\n"
	)
	for n, c := range []struct {
		version, lines string
		want           *Fault
	}{
		{version, host + framing + coding + expect, faultMajor},
		{"HTTP/1.1", expect + coding + framing + host, faultHost},
		{"HTTP/1.1", expect + coding + framing, faultNoHost},
		{"HTTP/1.1", "Host: a\r\n" + expect + coding + framing, faultLength},
		{"HTTP/1.1", "Host: a\r\n" + expect + coding + tooLarge, faultBothFramings},
		{"HTTP/1.1", "Host: a\r\n" + expect + coding, faultCoding},
		{"HTTP/1.1", "Host: a\r\n" + tooLarge + expect, faultExpectation},
		{"HTTP/1.1", "Host: a\r\n" + tooLarge, faultDeclaredSize},
		{"HTTP/1.1", "Host: a\r\n", faultConnect},
	} {
		in := []byte("CONNECT a:1 " + c.version + "\r\n" + c.lines + "\r\n")
		got := judgeEveryWay(t, in, testMaxBody)
		require.Equal(t, *c.want, got.fault, "%d: %s", n, got.fault.Reason)
		require.Equal(t, len(in)-1, got.at)
	}
}

func TestReasonsAreToldApart(t *testing.T) {
	for in, want := range map[string]*Fault{
		"\r\n▸\r\n":                 faultEmptyLines,
		"▸\r":                       nil,
		"\r▸x":                      faultBareCR,
		"▸\n":                       faultBareLF,
		"GET▸\t":                    faultMethod,
		"GET ▸é":                    faultNoTarget,
		"GET ▸*":                    faultAsterisk,
		"GET a▸/":                   faultScheme,
		"GET http:▸x":               faultScheme,
		"GET http://▸:":             faultAuthority,
		"GET /▸#":                   faultTargetByte,
		"GET /%▸g":                  faultEscape,
		"GET / HTTP/1.1\r\n▸ ":      faultBlankFirst,
		"GET / HTTP/1.1\r\na▸ ":     faultBlankInName,
		"GET / HTTP/1.1\r\na▸\r":    faultNoColon,
		"GET / HTTP/1.1\r\n▸(":      faultName,
		"GET / HTTP/1.1\r\na:▸\x00": faultValue,
		"GET / HTTP/1.1\r\na:▸\n":   faultBareLF,
		"GET / HTTP/1.1▸\n":         faultBareLF,
		"GET / HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n": faultHosts,
	} {
		b, at := unmark(in)
		got := judgeEveryWay(t, b, testMaxBody)
		if want == nil {
			require.Equal(t, Incomplete, got.verdict, "%q", in)
			continue
		}
		require.Equal(t, *want, got.fault, "%q", in)
		require.Equal(t, at, got.at, "%q", in)
	}
}

// A judge that is used again remembers nothing.
func TestReset(t *testing.T) {
	var used, fresh Judge
	for n, in := range []string{
		"POST http://b/c%41?d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
		"CONNECT a:1 HTTP/2.0\r\nHost: a\r\nHost: b\r\nTransfer-Encoding: x\r\nContent-Length: x\r\n\r\n",
		"GET /%",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		used.Reset(int64(n))
		fresh = Judge{}
		fresh.Reset(int64(n))
		require.Equal(t, fresh, used)
		require.Equal(t, Fault{}, used.Fault())
		used.Scan([]byte(in))
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "incomplete complete faulty unknown", fmt.Sprint(Incomplete, " ", Complete, " ", Faulty, " ", Verdict(9)))
	require.Equal(t, "origin-form absolute-form asterisk-form unknown", fmt.Sprint(OriginForm, " ", AbsoluteForm, " ", AsteriskForm, " ", TargetForm(9)))
}
