// Package toolchain asks what flags of the compiler and the linker bring. Its ways are builds of
// this same code (lab.yaml says which), so there are only two functions here, one for each case.
package toolchain

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/evanphx/wildcat"

	"github.com/qps-ladder/qps-ladder/shared/app"
	"github.com/qps-ladder/qps-ladder/shared/http1"
)

// Codec is what stage5 does with a request between two system calls, with the same packages and in
// the same order.
type Codec struct {
	app      *app.App
	judge    http1.Judge
	views    views
	request  http1.Request
	response http1.Response
	out      []byte
}

// NewCodec makes one.
func NewCodec() *Codec {
	return &Codec{app: app.New(app.Options{}), views: views{parser: wildcat.NewSizedHTTPParser(http1.MaxHeaders + 1)}}
}

// Answer returns the answer to a request without a body, nil for one that is not whole and valid.
// The next call overwrites it.
func (c *Codec) Answer(in []byte) []byte {
	c.judge.Reset(1 << 20)
	if c.judge.Scan(in) != http1.Complete {
		return nil
	}
	head := c.judge.Head()
	if _, err := c.views.parser.Parse(in[head.Start:]); err != nil {
		return nil
	}
	c.views.count = head.Headers
	c.request = http1.Request{
		Method: http1.View(c.views.parser.Method), Target: http1.View(c.views.parser.Path), Path: http1.View(head.Path.Of(in)),
		Query: http1.View(head.Query.Of(in)), Host: http1.View(head.Host.Of(in)), Minor: head.Minor, Headers: &c.views,
	}
	c.response.Reset()
	c.app.Serve(&c.request, &c.response)
	if c.request.Header("If-None-Match") != "" { // a field that is not there: all are looked at
		c.response.Status = 304
	}
	c.out = append(appendHead(c.out[:0], &c.response), c.response.Body...)
	return c.out
}

// views finds fields in the parser's array, as the stages' headerViews does.
type views struct {
	parser *wildcat.HTTPParser
	count  int
}

// Get implements http1.Headers.
func (v *views) Get(name string) string {
	for i := range v.count {
		field := &v.parser.Headers[i]
		if len(field.Name) == len(name) && strings.EqualFold(http1.View(field.Name), name) {
			return strings.TrimRight(http1.View(field.Value), " \t\r")
		}
	}
	return ""
}

// Values implements http1.Headers; nobody asks here.
func (v *views) Values(string) []string { return nil }

// appendHead is the stages' writer of heads, with a date that stands still.
func appendHead(dst []byte, r *http1.Response) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http1.StatusText(r.Status)...)
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(r.ContentLength()), 10)
	dst = append(dst, "\r\nContent-Type: "...)
	dst = append(dst, r.ContentType...)
	return append(dst, "\r\nDate: Mon, 01 Jun 2026 00:00:00 GMT\r\nServer: qps-ladder\r\n\r\n"...)
}

// Product is something that a shop sells.
type Product struct {
	Name string
	Sold int
	set  grams
}

// NewProduct makes one, ready to be compared.
func NewProduct(name string, sold int) Product { return Product{name, sold, gramsOf(name)} }

// grams has a bit for each three letters in a row that a text has, by a hash.
type grams [4]uint64

func gramsOf(text string) (set grams) {
	text = strings.ToLower(text)
	for i := range max(0, len(text)-2) {
		hash := (uint32(text[i])<<16 | uint32(text[i+1])<<8 | uint32(text[i+2])) * 2654435761 >> 24
		set[hash/64] |= 1 << (hash % 64)
	}
	return set
}

// rule gives points to a product for a search.
type rule interface {
	points(query *grams, p *Product) int
}

// likeness counts what two texts have in common, and popularity is the logarithm of what was sold.
type (
	likeness   struct{}
	popularity struct{}
)

func (likeness) points(query *grams, p *Product) (n int) {
	for i, word := range query {
		n += bits.OnesCount64(word & p.set[i])
	}
	return 16 * n
}

func (popularity) points(_ *grams, p *Product) int { return bits.Len(uint(p.Sold)) }

// Shop answers its search box.
type Shop struct {
	products []Product
	rules    []rule
	hits     []hit
	out      []byte
}

type hit struct{ product, points int }

// NewShop makes one that sells products.
func NewShop(products []Product) *Shop {
	return &Shop{products: products, rules: []rule{likeness{}, popularity{}}}
}

// Suggest returns the ten products that are most like what was typed, as JSON. The next call
// overwrites it. It is written as one would: rules behind an interface, a comparison as a function.
func (s *Shop) Suggest(typed string) []byte {
	query := gramsOf(typed)
	s.hits = s.hits[:0]
	for i := range s.products {
		points := 0
		for _, r := range s.rules {
			points += r.points(&query, &s.products[i])
		}
		if points >= 48 { // three grams, or two and a bestseller
			s.hits = append(s.hits, hit{i, points})
		}
	}
	slices.SortFunc(s.hits, func(a, b hit) int {
		if a.points != b.points {
			return b.points - a.points
		}
		return a.product - b.product
	})
	s.out = append(s.out[:0], '[')
	for i, h := range s.hits[:min(10, len(s.hits))] {
		if i > 0 {
			s.out = append(s.out, ',')
		}
		s.out = append(s.out, `{"name":`...)
		s.out = strconv.AppendQuote(s.out, s.products[h.product].Name)
		s.out = append(s.out, `,"points":`...)
		s.out = append(strconv.AppendInt(s.out, int64(h.points), 10), '}')
	}
	return append(s.out, ']')
}
