// Package fields is a lab: what the fields of a head are kept in, so that a handler finds them by name.
package fields

import (
	"net/textproto"
	"strings"
)

// A Field is a field line. Names compare without regard to case (RFC 9110, 5.1).
type Field struct{ Name, Value string }

// A Store takes the fields of one request after the other. Get takes a name in canonical form, as all
// handlers write it, and returns the value of the first field with it, or "".
type Store interface {
	Fill(fields []Field)
	Get(name string) string
}

// Map makes a new map for each request, which is large enough from the start.
type Map struct{ values map[string]string }

// Fill goes from the last to the first, so that of several the first one stays.
func (m *Map) Fill(fields []Field) {
	m.values = make(map[string]string, len(fields))
	for i := len(fields) - 1; i >= 0; i-- {
		m.values[textproto.CanonicalMIMEHeaderKey(fields[i].Name)] = fields[i].Value
	}
}

// Get looks a name up.
func (m *Map) Get(name string) string { return m.values[name] }

// SameMap has one map for all requests, which it clears: no allocation.
type SameMap struct{ values map[string]string }

// NewSameMap returns an empty one.
func NewSameMap() *SameMap { return &SameMap{map[string]string{}} }

// Fill is Map's, into the map that is there.
func (m *SameMap) Fill(fields []Field) {
	clear(m.values)
	for i := len(fields) - 1; i >= 0; i-- {
		m.values[textproto.CanonicalMIMEHeaderKey(fields[i].Name)] = fields[i].Value
	}
}

// Get looks a name up.
func (m *SameMap) Get(name string) string { return m.values[name] }

// Scan keeps the fields as they come. All work is done by who asks.
type Scan struct{ fields []Field }

// Fill copies the fields' views: a parser would write them here in the first place.
func (s *Scan) Fill(fields []Field) { s.fields = append(s.fields[:0], fields...) }

// Get looks at all of them. Most names differ in length, which is cheap to see.
func (s *Scan) Get(name string) string {
	for i := range s.fields {
		f := &s.fields[i]
		if len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// ScanAll is Scan without the look at the length.
type ScanAll struct{ fields []Field }

// Fill copies the fields' views.
func (s *ScanAll) Fill(fields []Field) { s.fields = append(s.fields[:0], fields...) }

// Get compares all names until one is equal.
func (s *ScanAll) Get(name string) string {
	for i := range s.fields {
		if f := &s.fields[i]; strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Slots knows beforehand which fields will be asked for, and has a place for each. The rest is scanned.
type Slots struct {
	known [slots]string
	rest  Scan
}

const (
	acceptEncoding = iota
	connection
	contentLength
	contentType
	cookie
	host
	ifNoneMatch
	userAgent
	slots
)

// slotOf returns the slot of a canonical name, or -1. The compiler makes it a search by length first.
func slotOf(name string) int {
	switch name {
	case "Accept-Encoding":
		return acceptEncoding
	case "Connection":
		return connection
	case "Content-Length":
		return contentLength
	case "Content-Type":
		return contentType
	case "Cookie":
		return cookie
	case "Host":
		return host
	case "If-None-Match":
		return ifNoneMatch
	case "User-Agent":
		return userAgent
	}
	return -1
}

// Fill sorts the fields into known ones and others.
func (s *Slots) Fill(fields []Field) {
	s.known = [slots]string{}
	s.rest.fields = s.rest.fields[:0]
	for i := range fields {
		f := &fields[i]
		switch slot := slotOf(textproto.CanonicalMIMEHeaderKey(f.Name)); {
		case slot < 0:
			s.rest.fields = append(s.rest.fields, *f)
		case s.known[slot] == "":
			s.known[slot] = f.Value
		}
	}
}

// Get takes a known field from its place.
func (s *Slots) Get(name string) string {
	if slot := slotOf(name); slot >= 0 {
		return s.known[slot]
	}
	return s.rest.Get(name)
}

// Asked are the names that a server looks at in nearly every request; of the last two a browser sends
// none with GET.
var Asked = []string{"Connection", "Accept-Encoding", "If-None-Match", "Content-Length"}

// Serve is what a request needs: its fields put away, and names asked for. It returns the values'
// length, so that nothing is left out.
func Serve(s Store, fields []Field, asked []string) (length int) {
	s.Fill(fields)
	for _, name := range asked {
		length += len(s.Get(name))
	}
	return length
}
