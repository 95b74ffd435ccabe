//go:build !race

package suite

// raceEnabled says that the race detector is on: everything is several times slower then, and the
// runtime allocates on its own account.
const raceEnabled = false
