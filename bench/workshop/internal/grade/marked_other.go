//go:build !linux

package grade

// EndMarked does nothing: no server is started here.
func EndMarked(string) int { return 0 }
