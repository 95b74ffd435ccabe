package app

import "syscall"

// blankBytes are n bytes that take no memory: nobody writes to them, so the kernel has none behind
// them; mmap(2). They are the body of an answer to HEAD, of which only the length is sent. nil if
// they cannot be had: such a file is read for HEAD as for GET.
func blankBytes(n int64) []byte {
	if n == 0 || n != int64(int(n)) {
		return nil
	}
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	return b
}

func freeBlankBytes(b []byte) {
	if b != nil {
		syscall.Munmap(b)
	}
}
