//go:build !unix

package workshop

import "os"

// lock does nothing here: there is no flock(2), and no server of this repository either.
func lock(*os.File) error { return nil }
