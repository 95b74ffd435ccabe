// Package input holds what a server is given, for the labs to work on: heads of requests, and the
// status codes of answers. Nobody may change it.
package input

import (
	"bytes"
	"math/rand/v2"
	"strings"
)

// Hello is the head that wrk sends: one field.
var Hello = []byte("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n")

// Browser is what a browser sends to a site with a few cookies: 14 fields, 700 bytes.
var Browser = []byte("GET /products/catalogue/index.html?category=books&page=2&sort=price HTTP/1.1\r\n" +
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
	"Cookie: session=0123456789abcdef0123456789abcdef0123456789\r\n\r\n")

// Cookies is Browser with 4 KB more of cookies, which large sites have.
var Cookies = bytes.Replace(Browser, []byte("session="), []byte("seen="+strings.Repeat("0123456789abcdef", 256)+"; session="), 1)

// Targets returns n different request targets of an API, in no order.
func Targets(n int) []string {
	words := []string{"accounts", "basket", "catalogue", "customers", "deliveries", "invoices", "items", "orders", "payments", "users"}
	versions := []string{"v1", "v2"}
	targets := make([]string, n)
	for i := range targets {
		target := "/api/" + versions[i%2] + "/" + words[i/2%10]
		for rest := i / 20; rest > 0; rest /= 10 {
			target += "/" + words[(rest+i)%10]
		}
		targets[i] = target
	}
	return targets
}

// Statuses returns n status codes in the mixture of a site that is well: 90% 200, the others nearly all
// 304 and 404. It is the same on each call.
func Statuses(n int) []int {
	random := rand.New(rand.NewPCG(1, 2))
	codes := make([]int, n)
	for i := range codes {
		switch p := random.IntN(1000); {
		case p < 900:
			codes[i] = 200
		case p < 950:
			codes[i] = 304
		case p < 980:
			codes[i] = 404
		case p < 990:
			codes[i] = 302
		default:
			codes[i] = []int{101, 201, 204, 206, 301, 400, 401, 403, 429, 500, 503}[p-990]
		}
	}
	return codes
}
