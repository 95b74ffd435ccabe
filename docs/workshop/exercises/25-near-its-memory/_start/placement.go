package main

// Place chooses CPUs for so many loops, one each, in the order of the loops. There
// are fewer if there are not as many CPUs: then loops share. allowed are the CPUs
// that the process may use, which a cgroup may have limited; read gives the text of
// a file below /sys by its path, "" if there is none.
//
// It takes them as they are numbered.
func Place(allowed []int, loops int, read func(name string) string) []int {
	return allowed[:min(loops, len(allowed))]
}
