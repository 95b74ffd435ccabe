package http1

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// helloHead is what wrk sends.
const helloHead = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"

// browserHead is what a browser sends to a site with a few cookies: 800 bytes, 14 fields.
var browserHead = func() string {
	head := "GET /products/catalogue/index.html?category=books&page=2&sort=price HTTP/1.1\r\n" +
		"Host: shop.example.org\r\n" +
		"Connection: keep-alive\r\n" +
		"Cache-Control: max-age=0\r\n" +
		"Upgrade-Insecure-Requests: 1\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
		"Sec-Fetch-Site: same-origin\r\n" +
		"Sec-Fetch-Mode: navigate\r\n" +
		"Sec-Fetch-User: ?1\r\n" +
		"Sec-Fetch-Dest: document\r\n" +
		"Referer: https://shop.example.org/products\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7\r\n" +
		"Cookie: session="
	const end = "\r\n\r\n"
	return head + strings.Repeat("0123456789abcdef", 50)[:800-len(head)-len(end)] + end
}()

func benchmarkJudge(b *testing.B, head string) {
	in := []byte(head)
	var j Judge
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		j.Reset(1 << 20)
		if j.Scan(in) != Complete {
			b.Fatal(j.Fault().Reason)
		}
	}
}

func BenchmarkJudgeHello(b *testing.B)   { benchmarkJudge(b, helloHead) }
func BenchmarkJudgeBrowser(b *testing.B) { benchmarkJudge(b, browserHead) }
func BenchmarkJudgeEscaped(b *testing.B) {
	benchmarkJudge(b, "GET /"+strings.Repeat("%E7%BC%96", 40)+" HTTP/1.1\r\nHost: [2001:db8::7]:8080\r\n\r\n")
}

// BenchmarkJudgeBrowserBytes is the price of the most hostile fragmentation.
func BenchmarkJudgeBrowserBytes(b *testing.B) {
	in := []byte(browserHead)
	var j Judge
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		j.Reset(1 << 20)
		for n := range in {
			j.Scan(in[:n+1])
		}
	}
}

func benchmarkChunks(b *testing.B, chunk int) {
	const total = 64 << 10
	var in []byte
	for range total / chunk {
		in = append(in, strings.ToUpper(hex(chunk))+"\r\n"+strings.Repeat("x", chunk)+"\r\n"...)
	}
	in = append(in, "0\r\n\r\n"...)
	out := make([]byte, 0, total)
	var body Body
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(&Head{Chunked: true}, total)
		if _, _, v := body.Append(out, in); v != Complete {
			b.Fatal(body.Fault().Reason)
		}
	}
}

func BenchmarkChunks4096(b *testing.B) { benchmarkChunks(b, 4096) }
func BenchmarkChunks16(b *testing.B)   { benchmarkChunks(b, 16) }

// hex writes n as chunk-size.
func hex(n int) string {
	const digits = "0123456789abcdef"
	if n < 16 {
		return digits[n : n+1]
	}
	return hex(n/16) + digits[n%16:n%16+1]
}

// DESIGN: an incremental scanner without allocations; faults cost none either.
func TestNoAllocations(t *testing.T) {
	require.Len(t, browserHead, 800)
	require.Equal(t, 14, strings.Count(browserHead, "\r\n")-2)
	var j Judge
	for _, head := range []string{helloHead, browserHead, "GET / HTTP/1.1\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"} {
		in := []byte(head)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			j.Reset(1 << 20)
			for n := range in {
				j.Scan(in[:n+1])
			}
			_ = j.Fault()
			_ = j.Head()
		}), head)
	}
	in := []byte("5;a=\"b\"\r\nhello\r\n0\r\nTrailer: x\r\n\r\n")
	buffer := make([]byte, len(in))
	var body Body
	require.Zero(t, testing.AllocsPerRun(100, func() {
		copy(buffer, in)
		body.Reset(&Head{Chunked: true}, 5)
		out, used, v := body.Append(buffer[:0], buffer)
		if v != Complete || used != len(in) || !bytes.Equal(out, []byte("hello")) {
			panic(v)
		}
	}))
}
