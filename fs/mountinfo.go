package fs

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// Mounted is a line of the mount table.
type Mounted struct {
	Dir    string // mountpoint
	Device string // major:minor
	Type   string // "fuse.icefs"
}

// MountTable reads the mounts of this process, in the order they were made.
func MountTable() ([]Mounted, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []Mounted
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m, ok := parseMountInfo(lines.Text()); ok {
			list = append(list, m)
		}
	}
	return list, lines.Err()
}

// parseMountInfo reads a line of proc_pid_mountinfo(5).
func parseMountInfo(line string) (Mounted, bool) {
	head, tail, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(head), strings.Fields(tail)
	if !ok || len(left) < 5 || len(right) < 1 {
		return Mounted{}, false
	}
	return Mounted{Dir: unescapeOctal(left[4]), Device: left[2], Type: right[0]}, true
}

// unescapeOctal undoes \040 and the like.
func unescapeOctal(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// MountedOn returns the topmost mount on dir, an absolute path without links.
func MountedOn(dir string) (Mounted, bool, error) {
	list, err := MountTable()
	if err != nil {
		return Mounted{}, false, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Dir == dir {
			return list[i], true, nil
		}
	}
	return Mounted{}, false, nil
}
