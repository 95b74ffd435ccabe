package main

import (
	"os"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
	"github.com/qps-ladder/qps-ladder/shared/serve"
)

// placed is the configuration with the CPUs that Place chooses for the loops, if
// they are to be pinned.
func placed(config *serve.Config) *serve.Config {
	allowed, err := netpoll.CPUs()
	if err != nil || !config.Pin {
		return config
	}
	own := *config
	if own.CPUs = Place(allowed, config.Workers, readSys); len(own.CPUs) == 0 {
		return config
	}
	return &own
}

// readSys gives the text of a file below /sys, "" if it cannot be read.
func readSys(name string) string {
	text, err := os.ReadFile("/sys/" + name)
	if err != nil {
		return ""
	}
	return string(text)
}
