// Package shards asks how to share a map between threads: connections by their id, sessions by their
// token.
package shards

import (
	"hash/maphash"
	"sync"
)

// session is what is looked up.
type session struct{ user uint64 }

// table is a map that many goroutines use.
type table interface {
	get(token string) (*session, bool)
	put(token string, s *session)
	drop(token string)
}

// locked is the baseline: a map and one RWMutex.
type locked struct {
	mu sync.RWMutex
	m  map[string]*session
}

func newLocked() *locked { return &locked{m: map[string]*session{}} }

func (l *locked) get(token string) (*session, bool) {
	l.mu.RLock()
	s, ok := l.m[token]
	l.mu.RUnlock()
	return s, ok
}

func (l *locked) put(token string, s *session) {
	l.mu.Lock()
	l.m[token] = s
	l.mu.Unlock()
}

func (l *locked) drop(token string) {
	l.mu.Lock()
	delete(l.m, token)
	l.mu.Unlock()
}

// tokenSize is the length of every token.
const tokenSize = 32

// fixed is locked with keys of a fixed length, which lie in the map itself: a look-up does not fetch
// the bytes of a string from elsewhere to compare them.
type fixed struct {
	mu sync.RWMutex
	m  map[[tokenSize]byte]*session
}

func newFixed() *fixed { return &fixed{m: map[[tokenSize]byte]*session{}} }

func (f *fixed) get(token string) (*session, bool) {
	key := [tokenSize]byte([]byte(token))
	f.mu.RLock()
	s, ok := f.m[key]
	f.mu.RUnlock()
	return s, ok
}

func (f *fixed) put(token string, s *session) {
	key := [tokenSize]byte([]byte(token))
	f.mu.Lock()
	f.m[key] = s
	f.mu.Unlock()
}

func (f *fixed) drop(token string) {
	key := [tokenSize]byte([]byte(token))
	f.mu.Lock()
	delete(f.m, key)
	f.mu.Unlock()
}

// exclusive is a map and a Mutex, which has less to do than an RWMutex and lets one in at a time.
type exclusive struct {
	mu sync.Mutex
	m  map[string]*session
}

func newExclusive() *exclusive { return &exclusive{m: map[string]*session{}} }

func (e *exclusive) get(token string) (*session, bool) {
	e.mu.Lock()
	s, ok := e.m[token]
	e.mu.Unlock()
	return s, ok
}

func (e *exclusive) put(token string, s *session) {
	e.mu.Lock()
	e.m[token] = s
	e.mu.Unlock()
}

func (e *exclusive) drop(token string) {
	e.mu.Lock()
	delete(e.m, token)
	e.mu.Unlock()
}

// library is sync.Map: a trie of hashes, whose readers take no lock. Keys and values are interfaces.
type library struct{ m sync.Map }

func (l *library) get(token string) (*session, bool) {
	v, ok := l.m.Load(token)
	if !ok {
		return nil, false
	}
	return v.(*session), true
}

func (l *library) put(token string, s *session) { l.m.Store(token, s) }
func (l *library) drop(token string)            { l.m.Delete(token) }

// shards is how many maps there are: a power of two.
const shards = 64

// sharded is 64 maps with a Mutex each; the hash of the key says which. Two threads meet only when
// they want the same one. It costs a second hash, since a map does not tell its own.
type sharded struct {
	seed  maphash.Seed
	parts [shards]struct {
		exclusive
		_ [48]byte // a cache line each
	}
}

func newSharded() *sharded {
	s := &sharded{seed: maphash.MakeSeed()}
	for i := range s.parts {
		s.parts[i].m = map[string]*session{}
	}
	return s
}

func (s *sharded) of(token string) *exclusive {
	return &s.parts[maphash.String(s.seed, token)%shards].exclusive
}

func (s *sharded) get(token string) (*session, bool) { return s.of(token).get(token) }
func (s *sharded) put(token string, v *session)      { s.of(token).put(token, v) }
func (s *sharded) drop(token string)                 { s.of(token).drop(token) }
