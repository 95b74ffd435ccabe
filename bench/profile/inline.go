package profile

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
)

// An inliner names the functions that a compiler put into others: perf knows
// only the outermost. It reads the debug information of a Go binary, of a
// function only when it is first asked about it.
type inliner struct {
	data      *dwarf.Data
	machine   elf.Machine
	order     binary.ByteOrder
	text      []byte // the code
	textStart uint64
	segments  []elf.ProgHeader
	functions []compiledFunction      // by address
	names     map[dwarf.Offset]string // of all functions, by where they are declared
}

// compiledFunction is the code of one function and of those inside it.
type compiledFunction struct {
	offset dwarf.Offset // of its entry
	origin dwarf.Offset // where it is declared; the same for one that is not inlined
	ranges [][2]uint64

	read   bool // whether inside has been looked for
	inside []compiledFunction
}

func (f *compiledFunction) has(pc uint64) bool {
	return slices.ContainsFunc(f.ranges, func(r [2]uint64) bool { return r[0] <= pc && pc < r[1] })
}

// newInliner is nil when the binary has no debug information: then all stays as
// perf sees it.
func newInliner(path string) *inliner {
	file, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	i := &inliner{machine: file.Machine, order: file.ByteOrder, names: map[dwarf.Offset]string{}}
	if i.data, err = file.DWARF(); err != nil {
		return nil
	}
	if s := file.Section(".text"); s != nil {
		i.textStart = s.Addr
		i.text, _ = s.Data() // without it, gaps stay
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			i.segments = append(i.segments, p.ProgHeader)
		}
	}
	reader := i.data.Reader()
	for {
		entry, err := reader.Next()
		switch {
		case err != nil:
			return nil
		case entry == nil:
			sort.Slice(i.functions, func(a, b int) bool { return i.functions[a].ranges[0][0] < i.functions[b].ranges[0][0] })
			return i
		case entry.Tag == dwarf.TagSubprogram:
			if name, ok := entry.Val(dwarf.AttrName).(string); ok {
				i.names[entry.Offset] = name
			}
			f, err := i.function(entry)
			if err != nil {
				return nil
			}
			if len(f.ranges) > 0 {
				i.functions = append(i.functions, f)
			}
		}
		if entry.Tag != dwarf.TagCompileUnit {
			reader.SkipChildren()
		}
	}
}

func (i *inliner) function(entry *dwarf.Entry) (f compiledFunction, err error) {
	f.offset, f.origin = entry.Offset, entry.Offset
	if origin, ok := entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset); ok {
		f.origin = origin
	}
	f.ranges, err = i.data.Ranges(entry)
	return f, err
}

// readInside fills in what is inside f. What cannot be read is left out.
func (i *inliner) readInside(f *compiledFunction) {
	if f.read {
		return
	}
	f.read = true
	reader := i.data.Reader()
	reader.Seek(f.offset)
	if entry, err := reader.Next(); err == nil && entry != nil && entry.Children {
		f.inside = i.inside(reader)
	}
}

// inside reads the children of the entry that the reader stands behind, to their end.
func (i *inliner) inside(reader *dwarf.Reader) (out []compiledFunction) {
	for {
		entry, err := reader.Next()
		if err != nil || entry == nil || entry.Tag == 0 {
			return out
		}
		switch entry.Tag {
		case dwarf.TagInlinedSubroutine:
			if f, err := i.function(entry); err == nil {
				f.read = true
				if entry.Children {
					f.inside = i.inside(reader)
				}
				out = append(out, f)
				continue
			}
		case dwarf.TagLexDwarfBlock:
			if entry.Children {
				out = append(out, i.inside(reader)...)
			}
			continue
		}
		reader.SkipChildren()
	}
}

// expand names the functions at an address of perf, innermost first. name is
// perf's, for the outermost. The address of a caller is where it goes on.
func (i *inliner) expand(address uint64, leaf bool, name string) []string {
	name = strings.TrimSuffix(name, ".abi0")
	pc, f := i.locate(address, leaf, name)
	if f == nil {
		return []string{name}
	}
	i.readInside(f)
	out := []string{name}
	for inside := f.inside; inside != nil; {
		n := slices.IndexFunc(inside, func(f compiledFunction) bool { return f.has(pc) })
		if n < 0 {
			break
		}
		out = append(out, i.names[inside[n].origin])
		inside = inside[n].inside
	}
	slices.Reverse(out)
	return out
}

// locate finds the function of that name at an address of perf, and an address
// of the binary that is in the instruction that ran, for a caller the call.
func (i *inliner) locate(address uint64, leaf bool, name string) (pc uint64, f *compiledFunction) {
	for _, pc := range i.addresses(address) {
		if !leaf {
			pc--
		}
		// Whether perf gives an offset in the file depends on its version: the name tells.
		if f := i.find(pc); f != nil && i.names[f.origin] == name {
			return pc, f
		}
	}
	return 0, nil
}

// skipped finds the function that perf has lost between the innermost one of a
// program and the next: perf goes from frame to frame, and one that has none of
// its own, as memmove, hides its caller. The call in the next one tells who that
// is; "" when nobody is missing, or the call is not a direct one.
func (i *inliner) skipped(innermost string, address uint64, name string) string {
	pc, f := i.locate(address, false, strings.TrimSuffix(name, ".abi0"))
	if f == nil {
		return ""
	}
	back := pc + 1 // where the call returns to
	code := func(size uint64) []byte {
		from := back - size - i.textStart
		if back < i.textStart+size || back-i.textStart > uint64(len(i.text)) {
			return nil
		}
		return i.text[from : from+size]
	}
	var target uint64
	switch i.machine {
	case elf.EM_X86_64: // CALL rel32
		b := code(5)
		if b == nil || b[0] != 0xe8 {
			return ""
		}
		target = back + uint64(int64(int32(i.order.Uint32(b[1:]))))
	case elf.EM_AARCH64: // BL imm26, in words from the call itself
		b := code(4)
		if b == nil || i.order.Uint32(b)>>26 != 0b100101 {
			return ""
		}
		target = back - 4 + uint64(int64(int32(i.order.Uint32(b)<<6))>>4)
	default:
		return ""
	}
	callee := i.find(target)
	if callee == nil {
		return ""
	}
	// A wrapper between calling conventions has the name of what it wraps.
	found := i.names[callee.origin]
	if found == strings.TrimSuffix(innermost, ".abi0") || found == strings.TrimSuffix(name, ".abi0") {
		return ""
	}
	return found
}

// addresses are what an address of perf may mean: itself, or an offset in the file.
func (i *inliner) addresses(address uint64) []uint64 {
	out := []uint64{address}
	for _, s := range i.segments {
		if s.Off <= address && address < s.Off+s.Filesz {
			out = append(out, address-s.Off+s.Vaddr)
		}
	}
	return out
}

func (i *inliner) find(pc uint64) *compiledFunction {
	n := sort.Search(len(i.functions), func(n int) bool { return i.functions[n].ranges[0][0] > pc })
	if n == 0 || !i.functions[n-1].has(pc) {
		return nil
	}
	return &i.functions[n-1]
}
