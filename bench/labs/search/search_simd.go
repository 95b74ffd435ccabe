//go:build goexperiment.simd && amd64

package search

import (
	"math/bits"
	"simd/archsimd"
)

func init() {
	if archsimd.X86.AVX2() {
		Vector, Pass = vector, pass
	}
}

// vector is a search by AVX2, in Go. What is less than 32 bytes is left to Eight.
func vector(b []byte) int {
	i := 0
	lineFeeds := archsimd.BroadcastUint8x32('\n')
	for ; i+32 <= len(b); i += 32 {
		if found := archsimd.LoadUint8x32Slice(b[i:]).Equal(lineFeeds).ToBits(); found != 0 {
			archsimd.ClearAVXUpperBits()
			return i + bits.TrailingZeros32(found)
		}
	}
	archsimd.ClearAVXUpperBits()
	if n := Eight(b[i:]); n >= 0 {
		return i + n
	}
	return -1
}

func pass(head []byte) (sum int) {
	line, begin, i := 1, 0, 0
	lineFeeds := archsimd.BroadcastUint8x32('\n')
	for ; i+32 <= len(head); i += 32 {
		found := archsimd.LoadUint8x32Slice(head[i:]).Equal(lineFeeds).ToBits()
		for ; found != 0; found &= found - 1 {
			end := i + bits.TrailingZeros32(found) + 1
			sum += (end - begin) * line
			line, begin = line+1, end
		}
	}
	archsimd.ClearAVXUpperBits()
	for ; i < len(head); i++ {
		if head[i] == '\n' {
			sum += (i + 1 - begin) * line
			line, begin = line+1, i+1
		}
	}
	return sum
}
