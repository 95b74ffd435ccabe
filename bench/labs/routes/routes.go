// Package routes is a lab: how a server finds the handler of a path.
package routes

import (
	"hash/maphash"
	"slices"
	"strings"
)

// None is the number of the handler of a path that has none.
const None = -1

// A Router finds the number of a path's handler, or None. Paths come as views of the read buffer.
type Router interface{ Find(path []byte) int }

// Map is Go's map. The conversion to string copies nothing, as it is in the index expression itself.
type Map map[string]int

// NewMap numbers routes in their order.
func NewMap(routes []string) Map {
	m := make(Map, len(routes))
	for i, route := range routes {
		m[route] = i
	}
	return m
}

// Find looks path up.
func (m Map) Find(path []byte) int {
	if i, ok := m[string(path)]; ok {
		return i
	}
	return None
}

// A Switch is a switch statement. The compiler makes a search of it: by length, then by the texts of
// that length. It would be written by hand for ten routes; here all are generated, in the test.
type Switch func(path []byte) int

// Find calls it.
func (s Switch) Find(path []byte) int { return s(path) }

// A Tree is a radix tree, as routers are that know parameters: nodes with a common beginning share it.
type Tree struct {
	text     string // what comes next
	handler  int    // of what ends here
	first    []byte // the first byte of each child's text
	children []*Tree
}

// NewTree numbers routes in their order.
func NewTree(routes []string) *Tree {
	root := &Tree{handler: None}
	for i, route := range routes {
		root.insert(route, i)
	}
	return root
}

func (t *Tree) insert(path string, handler int) {
	if path == "" {
		t.handler = handler
		return
	}
	at := slices.Index(t.first, path[0])
	if at < 0 {
		t.first = append(t.first, path[0])
		t.children = append(t.children, &Tree{text: path, handler: handler})
		return
	}
	child := t.children[at]
	common := 0
	for common < min(len(path), len(child.text)) && path[common] == child.text[common] {
		common++
	}
	if common < len(child.text) { // the child is split: its beginning gets its own node
		rest := *child
		rest.text = child.text[common:]
		*child = Tree{text: child.text[:common], handler: None, first: []byte{rest.text[0]}, children: []*Tree{&rest}}
	}
	child.insert(path[common:], handler)
}

// Find goes down one node for each place where routes part.
func (t *Tree) Find(path []byte) int {
next:
	for len(path) > 0 {
		for i, c := range t.first {
			if c != path[0] {
				continue
			}
			t = t.children[i]
			if len(path) < len(t.text) || string(path[:len(t.text)]) != t.text {
				return None
			}
			path = path[len(t.text):]
			continue next
		}
		return None
	}
	return t.handler
}

// Perfect is a hash table without collisions, made for the routes that there are: one hash, one
// comparison. Paths of one bucket are moved together until none of them meets another.
type Perfect struct {
	seed  maphash.Seed
	move  []uint32 // of each bucket
	slots []slot
}

type slot struct {
	path    string
	handler int
}

// NewPerfect numbers routes in their order. There are at least as many slots as routes, and a power of
// two of them; and a fourth as many buckets.
func NewPerfect(routes []string) *Perfect {
	size := 4
	for size < len(routes)*5/4 {
		size *= 2
	}
	p := &Perfect{move: make([]uint32, size/4), slots: make([]slot, size)}
	for !p.place(routes) { // a seed with two equal hashes in a bucket, or bad luck
		clear(p.move)
		clear(p.slots)
	}
	return p
}

// place tries one seed. Full buckets go first, as long as there is room.
func (p *Perfect) place(routes []string) bool {
	p.seed = maphash.MakeSeed()
	buckets := make([][]int, len(p.move))
	for i, route := range routes {
		b := maphash.String(p.seed, route) % uint64(len(buckets))
		buckets[b] = append(buckets[b], i)
	}
	order := make([]int, len(buckets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return len(buckets[b]) - len(buckets[a]) })
	for _, b := range order {
		if !p.moveBucket(b, buckets[b], routes) {
			return false
		}
	}
	return true
}

// moveBucket finds the first move that brings all of bucket b to free slots.
func (p *Perfect) moveBucket(b int, members []int, routes []string) bool {
	var at []uint32
search:
	for move := range uint32(1 << 16) {
		at = at[:0]
		for _, i := range members {
			s := p.slot(maphash.String(p.seed, routes[i]), move)
			if p.slots[s].path != "" || slices.Contains(at, s) {
				continue search
			}
			at = append(at, s)
		}
		p.move[b] = move
		for n, i := range members {
			p.slots[at[n]] = slot{strings.Clone(routes[i]), i}
		}
		return true
	}
	return false
}

func (p *Perfect) slot(hash uint64, move uint32) uint32 {
	return (uint32(hash>>32) ^ move*0x9E3779B1>>7) & uint32(len(p.slots)-1)
}

// Find hashes path, and compares it with the only route that it can be.
func (p *Perfect) Find(path []byte) int {
	hash := maphash.Bytes(p.seed, path)
	s := &p.slots[p.slot(hash, p.move[hash%uint64(len(p.move))])]
	if s.path == string(path) && s.path != "" {
		return s.handler
	}
	return None
}
