package http1

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The value of the Host field, judged at the end of the head (RFC 9112, 3.2).
func TestHost(t *testing.T) {
	var cases []judgeCase
	for rule, values := range map[string][]string{
		"RFC 9110, 7.2": {"", "a", "www.example.org", "www.example.org:80", "127.0.0.1", "127.0.0.1:8080",
			"a:", ":", ":80", "a:0", "a:65535", "a:00000000000065535"},
		"RFC 3986, 3.2.2": {"azAZ09-._~!$&'()*+,;=", "%41%00%fF", "a%2ab", "256.256.256.256", "1.2.3", "a..b", ".",
			"[::]", "[::1]", "[::1]:", "[::1]:80", "[1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7::]", "[::2:3:4:5:6:7:8]",
			"[1::3:4:5:6:7:8]", "[2001:DB8::7]", "[abcd:ef01:2345:6789:abcd:ef01:2345:6789]", "[::ffff:192.0.2.128]",
			"[1:2:3:4:5:6:1.2.3.4]", "[::1.2.3.4]", "[1:2:3:4:5::1.2.3.4]", "[::255.255.255.0]", "[0000::0000]",
			"[v1.a]", "[V1F.azAZ09-._~!$&'()*+,;=:]", "[vf.:]"},
	} {
		for _, v := range values {
			cases = append(cases, judgeCase{"valid " + v, rule, hosted(v), 0})
		}
	}
	for rule, values := range map[string][]string{
		"RFC 9110, 7.2": {"a b", "a, b", "a/b", "http://a", "a@b", "me@a:80", "a:b", "a:80:80", "a:-1", "a:+1", "a:8 0",
			"a: 80", "a :80", "a:65536", "a:99999999999999999999", "a#", "a?", "\"a\"", "a\\", "<a>", "a|b", "a^", "{a}", "`"},
		"RFC 3986, 3.2.2": {"\xc3\xa9", "%", "%4", "%g0", "%0g", "a%:80", "a%4:80", "::1", "1::", "a[", "a]", "[", "[]", "]",
			"[a", "[::1", "[::1]a", "[::1]]", "[[::1]]", "[::1]80", "[::1] :80", "x[::1]", "[ ::1]",
			"[:]", "[:::]", "[1]", "[1:]", "[:1]", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[1:2:3:4:5:6:7:8::]",
			"[::1:2:3:4:5:6:7:8]", "[1::2::3]", "[1:::2]", "[::12345]", "[::g]", "[::1%25eth0]", "[::1%eth0]", "[1.2.3.4]",
			"[::1.2.3]", "[::1.2.3.4.5]", "[::1.2.3.256]", "[::256.2.3.4]", "[::01.2.3.4]", "[::1.2.3.04]", "[::1.2.3.]",
			"[::.2.3.4]", "[::1..3.4]", "[::1.2.3.4:5]", "[1:2:3:4:5:6:7:1.2.3.4]", "[1:2:3:4:5:1.2.3.4]",
			"[1:2:3:4:5:6::1.2.3.4]", "[::a.2.3.4]", "[::1.2.3.a]", "[::1000.2.3.4]",
			"[v]", "[v1]", "[v1.]", "[v.a]", "[vg.a]", "[v1.a", "[v1.a@]", "[v1.a/]", "[v1.%41]", "[v1:a]", "[x1.a]"},
	} {
		for _, v := range values {
			cases = append(cases, judgeCase{"invalid " + v, rule, hosted(v), 400})
		}
	}
	runJudgeCases(t, append(cases,
		judgeCase{"no blank before it", "5", "GET / HTTP/1.1\r\nHost:a\r\n\r\n", 0},
		judgeCase{"blanks around it", "5.1", "GET / HTTP/1.1\r\nHost: \t a:80\t \r\n\r\n", 0},
		judgeCase{"blanks alone", "5.1", "GET / HTTP/1.1\r\nHost: \t \r\n\r\n", 0},
		judgeCase{"in small letters", "RFC 9110, 5.1", "GET / HTTP/1.1\r\nhost: a\r\n\r\n", 0},
		judgeCase{"in mixed letters", "RFC 9110, 5.1", "GET / HTTP/1.1\r\nhOsT: a\r\n\r\n", 0},
		judgeCase{"in capitals", "RFC 9110, 5.1", "GET / HTTP/1.1\r\nHOST: a\r\n\r\n", 0},
		judgeCase{"not the first field", "RFC 9110, 5.3", "GET / HTTP/1.1\r\nA: b\r\nHost: a\r\n\r\n", 0},
		judgeCase{"none", "3.2", "GET / HTTP/1.1\r\n\r\n", 400},
		judgeCase{"names that nearly match", "3.2", "GET / HTTP/1.1\r\nHosts: a\r\nHos: a\r\nHosu: a\r\nPost: a\r\nX-Host: a\r\n\r\n", 400},
		judgeCase{"two that differ", "3.2", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
		judgeCase{"two that are equal", "3.2", "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400},
		judgeCase{"two that are empty", "3.2", "GET / HTTP/1.1\r\nHost:\r\nHost:\r\n\r\n", 400},
		judgeCase{"one valid and one not", "3.2", "GET / HTTP/1.1\r\nHost: a\r\nHost: b c\r\n\r\n", 400},
		judgeCase{"none in 1.0", "3.2", "GET / HTTP/1.0\r\n\r\n", 0},
		judgeCase{"two in 1.0", "3.2", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
		judgeCase{"invalid in 1.0", "3.2", "GET / HTTP/1.0\r\nHost: a b\r\n\r\n", 400},
		judgeCase{"none beside absolute-form", "3.2.2", "GET http://a/ HTTP/1.1\r\n\r\n", 400},
		judgeCase{"none beside absolute-form in 1.0", "3.2.2", "GET http://a/ HTTP/1.0\r\n\r\n", 0},
		judgeCase{"another one beside absolute-form", "3.2.2", "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", 0},
		judgeCase{"an invalid one beside absolute-form", "3.2", "GET http://a/ HTTP/1.1\r\nHost: b c\r\n\r\n", 400},
		judgeCase{"two beside absolute-form", "3.2", "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
	))
}

// ipv6Endings completes any prefix of an address that can be completed at all.
var ipv6Endings = func() []string {
	endings := []string{""}
	for _, begin := range []string{"", "0", "0.", ".", "1", ":", "::", ":0", ":0:", "0:"} {
		for n := range 9 {
			zeros := strings.TrimSuffix(strings.Repeat("0:", n), ":")
			endings = append(endings, begin+zeros, begin+zeros+"::", begin+zeros+":0.0.0.0")
		}
		for _, end := range []string{"0.0.0.0", "0.0.0", "0.0", "0"} {
			endings = append(endings, begin+end)
		}
	}
	return endings
}()

// RFC 3986, 3.2.2: the same addresses are valid as in net/netip, and a byte is refused exactly when no
// ending would make an address any more.
func TestIPv6(t *testing.T) {
	valid := func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err == nil && address.Is6() && address.Zone() == ""
	}
	completable := func(s string) bool {
		for _, ending := range ipv6Endings {
			if valid(s + ending) {
				return true
			}
		}
		return false
	}
	check := func(s string) {
		var a ipv6
		n := 0
		for n < len(s) && a.take(s[n]) {
			n++
			require.True(t, completable(s[:n]), "%q", s[:n])
		}
		if n < len(s) {
			require.False(t, completable(s[:n+1]), "%q of %q", s[:n+1], s)
			return
		}
		require.Equal(t, valid(s), a.take(']'), "%q", s)
	}
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{":", ":", ":", "::", "0", "1", "f", "25", "256", "A1b2", "12345", ".", "1.2.3.4", "0:0:0", "1:2:3:4:5:6", "g"}
	for range 5000 {
		s := ""
		for range 1 + random.IntN(12) {
			s += pieces[random.IntN(len(pieces))]
		}
		check(s)
	}
	for _, c := range []byte("/ %[@x\x00\xff") {
		require.False(t, new(ipv6).take(c))
	}
}
