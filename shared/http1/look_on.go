//go:build lookcount

package http1

// looked is the number of bytes looked at so far, by all scanners together.
var looked int

// look notes that n bytes are looked at. A test asserts that the work stays linear.
func look(n int) { looked += n }
