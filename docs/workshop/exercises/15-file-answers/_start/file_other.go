//go:build !linux

package main

import (
	"errors"
	"time"

	"github.com/qps-ladder/qps-ladder/shared/netpoll"
)

// Only the compiler comes here: no server starts without epoll.
var errOnlyLinux = errors.New("sendfile and MSG_MORE as they are used here need Linux")

func sendMore(*netpoll.Counters, int, []byte) (int, error) { return 0, errOnlyLinux }

func sendFile(*netpoll.Counters, int, int, *int64, int) (int, error) { return 0, errOnlyLinux }

func readFile(*netpoll.Counters, int, []byte, int64) error { return errOnlyLinux }

type folder int

func openFolder(string) folder { return -1 }

func (folder) open(string) (int, int64, time.Time, bool) { return -1, 0, time.Time{}, false }

func closeFile(int) {}
