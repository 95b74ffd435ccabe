package http1

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// meanings are the faults that are judged at the end of a well-formed head.
var meanings = map[string]bool{}

func init() {
	for _, fault := range []*Fault{faultMajor, faultNoHost, faultHosts, faultHost, faultLength, faultLengths, faultBothFramings,
		faultCodingOld, faultCodings, faultCoding, faultExpectation, faultDeclaredSize, faultConnect} {
		meanings[fault.Reason] = true
	}
}

// checkJudge requires the same verdict for any fragmentation, and the one of the reference.
func checkJudge(t testing.TB, in []byte, maxBody int64, cuts ...int) judged {
	t.Helper()
	got := judge(t, in, maxBody, len(in))
	bytes := make([]int, len(in)+1)
	for n := range bytes {
		bytes[n] = n
	}
	requireSame(t, in, got, judge(t, in, maxBody, bytes...))
	requireSame(t, in, got, judge(t, in, maxBody, append(cuts, len(in))...))
	length, status := referenceHead(in, maxBody)
	if length > 0 {
		require.Equal(t, status, got.fault.Status, "%q: %s", in, got.fault.Reason)
		if status == 0 {
			require.Equal(t, length, got.at, "%q", in)
		} else {
			require.Equal(t, length-1, got.at, "%q", in)
			require.True(t, meanings[got.fault.Reason], "%q: %s", in, got.fault.Reason)
		}
		return got
	}
	require.NotEqual(t, Complete, got.verdict, "%q", in)
	if got.verdict == Faulty {
		require.False(t, meanings[got.fault.Reason], "%q: %s", in, got.fault.Reason)
	}
	// Not one byte too late and not one too early, by the reference.
	if len(in) > 500 {
		return got
	}
	good := in
	if got.verdict == Faulty && got.fault.Status == 400 {
		require.False(t, referenceCompletable(in[:got.at+1]), "%q is refused", in[:got.at+1])
		good = in[:got.at]
	}
	if got.fault.Status != 431 {
		require.True(t, referenceCompletable(good), "%q is not refused", good)
	}
	return got
}

// checkFrame requires the same of every fragmentation, in place and not, and of the reference.
func checkFrame(t testing.TB, h *Head, in []byte, maxBody int64, cuts ...int) framed {
	t.Helper()
	got := frame(t, h, in, maxBody, false, len(in))
	bytes := make([]int, len(in)+1)
	for n := range bytes {
		bytes[n] = n
	}
	for _, inPlace := range []bool{false, true} {
		require.Equal(t, got, frame(t, h, in, maxBody, inPlace, bytes...), "%q", in)
		require.Equal(t, got, frame(t, h, in, maxBody, inPlace, append(cuts, len(in))...), "%q", in)
	}
	if !h.Chunked {
		require.Equal(t, h.ContentLength <= int64(len(in)), got.verdict == Complete)
		require.Equal(t, string(in[:min(int64(len(in)), h.ContentLength)]), got.out)
		return got
	}
	body, used := referenceChunks(in, maxBody)
	require.Equal(t, used > 0, got.verdict == Complete, "%q: %s", in, got.fault.Reason)
	if used > 0 {
		require.Equal(t, used, got.used, "%q", in)
		require.Equal(t, body, got.out, "%q", in)
	}
	return got
}

// twoCuts makes two cuts of the input from any two numbers.
func twoCuts(n int, a, b uint16) []int {
	first, second := int(a)%(n+1), int(b)%(n+1)
	return []int{min(first, second), max(first, second)}
}

func FuzzJudge(f *testing.F) {
	for _, in := range []string{
		helloHead, browserHead, "",
		"\r\nOPTIONS * HTTP/1.0\r\nConnection: keep-alive, x\r\n\r\n",
		"POST http://a:80/b%20?c HTTP/1.1\r\nHost: [::1]:8\r\nTransfer-Encoding: , chunked\r\nExpect: 100-continue\r\n\r\n0\r\n\r\n",
		"POST / HTTP/1.9\r\nHost:\r\nContent-Length: 05\r\nContent-Length: 5\r\n\r\n",
		"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\n",
		"GET / HTTP/3.0\r\nTransfer-Encoding: gzip;a=\"b,\\\"\", chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "GET / HTTP/1.1\r\n a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n",
		"GET /" + strings.Repeat("a", MaxTarget) + " HTTP/1.1\r\n",
		"GET / HTTP/1.1\r\n" + strings.Repeat("A:\t\r\n", MaxHeaders+1) + "\r\n",
		"GET / HTTP/1.1\r\nA:" + strings.Repeat("b\t", MaxHead/2) + "\r\n",
	} {
		f.Add([]byte(in), uint16(5), uint16(7), uint16(30))
	}
	f.Fuzz(func(t *testing.T, in []byte, maxBody, a, b uint16) {
		checkJudge(t, in, int64(maxBody), twoCuts(len(in), a, b)...)
	})
}

func FuzzTarget(f *testing.F) {
	for _, target := range []string{
		"/", "/a/../%41?b=%20&c/?", "*", "http://a", "https://a:080/b?c", "ftp://me:%41@[::1]:21/", "x+y://a:99999@b?", "file:///a",
		"a:80", "[v1.a]:65535", "[1:2:3:4:5:6:7::]:0", "[::ffff:1.2.3.4]:1", "http://:80/", "urn:a", "/#", "/%4", "//", "?a", "",
	} {
		f.Add(target, uint8(0), uint16(3))
		f.Add(target, uint8(1), uint16(4))
		f.Add(target, uint8(2), uint16(9))
	}
	f.Fuzz(func(t *testing.T, target string, method uint8, cut uint16) {
		name := []string{"GET", "OPTIONS", "CONNECT"}[method%3]
		in := []byte(name + " " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")
		got := checkJudge(t, in, testMaxBody, twoCuts(len(in), cut, cut/2)...)
		if strings.Contains(target, " ") || len(target) > MaxTarget {
			return
		}
		ok := got.verdict == Complete || got.fault.Status == 405
		require.Equal(t, referenceTarget(name, target), ok, "%q: %s", in, got.fault.Reason)
	})
}

func FuzzHost(f *testing.F) {
	for _, value := range []string{
		"", "a", "www.example.org:8080", "127.0.0.1:", ":80", "a:65536", "%41%g", "[::]", "[::1]:80", "[1:2:3:4:5:6:7:8]", "[::1.2.3.256]",
		"[v1f.a:b]", "[1::2::3]", "a, b", "a@b", " a\t", "\xff",
	} {
		f.Add(value, uint16(20))
	}
	f.Fuzz(func(t *testing.T, value string, cut uint16) {
		v := []byte(value)
		_, _, want := referenceHostPort(value)
		require.Equal(t, want, validHost(v[:len(v):len(v)]), "%q", value)
		// Resuming anywhere is the same as never stopping.
		var whole, parts authority
		n := whole.scan(v, 0, len(v))
		k := 0
		for end := range len(v) + 1 {
			if k = parts.scan(v[:end:end], k, end); k < end {
				break
			}
		}
		require.Equal(t, n, k, "%q", value)
		require.Equal(t, whole, parts, "%q", value)

		in := []byte("GET / HTTP/1.1\r\nHost:" + value + "\r\n\r\n")
		checkJudge(t, in, testMaxBody, twoCuts(len(in), cut, cut/2)...)
	})
}

func FuzzBody(f *testing.F) {
	for _, in := range []string{
		"", "hello", "0\r\n\r\n", "5\r\nhello\r\n0\r\nA: b\r\n\r\nGET", "1;a=\"b\\\"\" ; c = d\r\nx\r\n00;e\r\n\r\n", "ffffffffffffffffff\r\n",
		"5\nhello", "5;\r\n", "5 \r\n", "1\r\nx\n", "0\r\n a\r\n", "0\r\nA\r\n", "0;" + strings.Repeat("a", MaxChunkLine) + "\r\n",
		"0\r\nA:" + strings.Repeat("\tb", MaxTrailers/2) + "\r\n\r\n",
	} {
		f.Add([]byte(in), true, uint16(0), uint16(5), uint16(3), uint16(9))
		f.Add([]byte(in), false, uint16(5), uint16(5), uint16(3), uint16(9))
	}
	f.Fuzz(func(t *testing.T, in []byte, chunked bool, size, maxBody, a, b uint16) {
		h := &Head{Chunked: chunked}
		if !chunked {
			h.ContentLength = int64(size)
		}
		checkFrame(t, h, in, int64(maxBody), twoCuts(len(in), a, b)...)
	})
}

// targetPieces are what random request lines are made of, those that are valid first.
var targetPieces = [][]string{
	{"GET", "POST", "OPTIONS", "CONNECT", "g!", "\r\nGET", "", "\r\n\r\nGET", "GET ", "G@T"},
	{" "},
	{"/", "/a%20b?c", "http://a", "ftp://me:pw@", "HTTPS://a", "http://a:80", "http://", "ftp://", "//", "a:80", "[::1]:443", "*", "x:", "?"},
	{"", "/", "?b", "a", "a:1", ":", "%41", "%4", "@", "[1::2]", "[1:2:3:4:5:6:7:8]", "[::1.2.3.4]", "[v1.a]", ":65535", ":65536", "#c", "\x80", "::"},
	{"", "/d", "?e", "/%FF", ":9", "@f"},
}

// linePieces are field lines, those that are often valid first.
var linePieces = []string{
	"A: b\r\n", "Host: a\r\n", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n",
	"A:\r\n", "A: \tb c\t\r\n", "A: " + strings.Repeat("0123456789", 9) + "\r\n", "B: \x80\xff\r\n", "Connection: keep-alive, x\r\n", "Connection:\r\n",
	"Transfer-Encoding: gzip\r\n", "Transfer-Encoding: gzip;a=\"b\", chunked\r\n", "transfer-encoding:,Chunked ,\r\n",
	"Expect: x\r\n", "expect: 100-Continue \r\n", "Content-Length: 9000\r\n", "content-length: 05\r\n", "Host: a b\r\n", "host:\r\n",
	"Content-Length: 5, 5\r\n", "Content-Length:\r\n", "Content-Length: -1\r\n", "Transfer-Encoding: chunked;a=b\r\n", "Transfer-Encoding:,\r\n",
	"Transfer-Encoding: chunked, gzip\r\n", " A: b\r\n", "A : b\r\n", "A\r\n", ": b\r\n", "A: \x00\r\n", "A: b\n", "A: b\rc\r\n",
}

// randomHead makes a head that is valid or nearly so.
func randomHead(random *rand.Rand) []byte {
	pick := func(choices ...string) string {
		n := len(choices)
		return choices[min(random.IntN(n), random.IntN(n), random.IntN(n))]
	}
	head := pick("CONNECT a:80", "OPTIONS *", "CONNECT [::1]:443")
	if random.IntN(6) > 0 {
		head = ""
		for _, choices := range targetPieces {
			head += pick(choices...)
		}
	}
	head += pick(" HTTP/1.1\r\n", " HTTP/1.0\r\n", " HTTP/1.5\r\n", " HTTP/2.0\r\n", " HTTP/1.10\r\n", "  HTTP/1.1\r\n", " HTTP/1.1\n", " http/1.1\r\n")
	head += pick("Host: a\r\n", "Host: [::1]:80\r\n", "")
	for range random.IntN(4) {
		head += pick(linePieces...)
	}
	head += "\r\n"
	if random.IntN(2) == 0 {
		return []byte(head)
	}
	return mutate(random, []byte(head))
}

// mutate changes at most a few bytes.
func mutate(random *rand.Rand, in []byte) []byte {
	const likely = " \t\r\n\x00\x7f\x80:;,=\"\\%/?@[]#*+-.059afAFgvxX"
	for random.IntN(3) == 0 && len(in) > 0 {
		n := random.IntN(len(in))
		c := likely[random.IntN(len(likely))]
		switch random.IntN(4) {
		case 0:
			in[n] = c
		case 1:
			in = append(in[:n], in[n+1:]...)
		case 2:
			in = append(in[:n], append([]byte{c}, in[n:]...)...)
		case 3:
			in = in[:n]
		}
	}
	return in
}

// The reference and the judge agree about random heads, few of them valid, many nearly so.
func TestRandomHeads(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	seen := map[int]int{}
	for range 4000 {
		in := randomHead(random)
		got := checkJudge(t, in, testMaxBody, twoCuts(len(in), uint16(random.Uint32()), uint16(random.Uint32()))...)
		seen[got.fault.Status]++
	}
	for _, status := range []int{0, 400, 405, 413, 417, 501, 505} {
		require.NotZero(t, seen[status], "no head of status %d among %v", status, seen)
	}
}

func TestRandomChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	lines := []string{"0\r\n\r\n", "0\r\n\r\n", "1\r\nx\r\n", "a\r\n0123456789\r\n", "0003;a\r\n\r\n\r\r\n", "2 ; a = \"b\\\"c\" ;d\r\nxy\r\n", "0;a=b\r\nA: b\r\nC:\r\n\r\n",
		"5\r\nhello\r\n", "3e\r\n" + strings.Repeat("0", 62) + "\r\n"}
	seen := map[Verdict]int{}
	for range 5000 {
		in := ""
		for range 1 + random.IntN(5) {
			in += lines[random.IntN(len(lines))]
		}
		b := mutate(random, []byte(in))
		got := checkFrame(t, &Head{Chunked: true}, b, 70, twoCuts(len(b), uint16(random.Uint32()), uint16(random.Uint32()))...)
		seen[got.verdict]++
	}
	require.Len(t, seen, 3)
}

// What this judge makes of valid requests is what net/http's parser makes of them.
func TestSameAsNetHTTP(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	pick := func(choices ...string) string { return choices[random.IntN(len(choices))] }
	for range 3000 {
		body := strings.Repeat("x", random.IntN(40))
		minor := pick("0", "1", "1", "1")
		target := pick("/", "/a", "/a/b%20c/", "/%E7%BC%96", "//a", "/a;b=c,d", "http://b:81/c", "http://b/", "http://[::1]:8/c", "https://b") + pick("", "", "?", "?d=e%20f&g", "?a/b?c")
		host := pick("a", "a.example:80", "127.0.0.1:8080", "[::1]:80", "")
		lines := []string{"Host: " + host}
		framing := ""
		switch {
		case minor == "1" && random.IntN(3) == 0:
			lines = append(lines, pick("Transfer-Encoding: chunked", "transfer-encoding:Chunked "))
			for left := len(body); left > 0; {
				n := 1 + random.IntN(left)
				left -= n
				framing += hex(n) + pick("", ";a", ";a=b", ";a=\"b\"") + "\r\n" + strings.Repeat("x", n) + "\r\n"
			}
			framing += "0\r\n" + pick("", "A: b\r\n") + "\r\n"
		case body != "" || random.IntN(2) == 0:
			lines = append(lines, "Content-Length: "+pick("", "0", "00")+strconv.Itoa(len(body)))
			framing = body
		default:
			body = ""
		}
		for range random.IntN(5) {
			lines = append(lines, pick("Accept: */*", "X: \t y z ", "Empty:", "Cookie: a=b; c=d", "x-obs: \xe9", "Connection: close", "Connection: Keep-Alive", "connection: x, close"))
		}
		random.Shuffle(len(lines), func(a, b int) { lines[a], lines[b] = lines[b], lines[a] })
		in := pick("GET", "POST", "PUT", "X-Y", "OPTIONS") + " " + target + " HTTP/1." + minor + "\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" + framing

		got := judge(t, []byte(in), testMaxBody, len(in))
		require.Equal(t, Complete, got.verdict, "%q: %s", in, got.fault.Reason)
		h := got.head
		want, err := http.ReadRequest(bufio.NewReader(strings.NewReader(in)))
		require.NoError(t, err, "%q", in)
		view := func(s Span) string { return string(s.Of([]byte(in))) }
		require.Equal(t, want.Method, view(h.Method), "%q", in)
		require.Equal(t, want.RequestURI, view(h.Target), "%q", in)
		require.Equal(t, want.URL.RawQuery, view(h.Query), "%q", in)
		if !strings.HasPrefix(target, "//") { // net/http takes it for an authority
			require.Equal(t, want.URL.Path, string(AppendDecoded(nil, h.Path.Of([]byte(in)))), "%q", in)
		}
		require.Equal(t, want.Host, view(h.Host), "%q", in)
		require.Equal(t, want.ProtoMinor, int(h.Minor), "%q", in)
		require.Equal(t, len(want.TransferEncoding) > 0, h.Chunked, "%q", in)
		require.Equal(t, want.Close, !h.KeepAlive, "%q", in)
		if !h.Chunked {
			require.Equal(t, want.ContentLength, h.ContentLength, "%q", in)
		}
		wantBody, err := io.ReadAll(want.Body)
		require.NoError(t, err, "%q", in)
		gotBody := checkFrame(t, &h, []byte(in[h.Length:]), testMaxBody, 0)
		require.Equal(t, Complete, gotBody.verdict, "%q: %s", in, gotBody.fault.Reason)
		require.Equal(t, string(wantBody), gotBody.out, "%q", in)
		require.Equal(t, body, gotBody.out, "%q", in)
		require.Equal(t, len(in)-h.Length, gotBody.used, "%q", in)
	}
}
