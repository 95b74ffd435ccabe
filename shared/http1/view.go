package http1

import "unsafe"

// View is b as a string that shares its memory. It is valid as long as nobody
// writes to b: for a view into a read buffer, until the request is answered.
// strings.Clone makes a string to keep.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
