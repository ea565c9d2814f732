package pqfile

import (
	"fmt"
	"runtime/debug"
)

// Protect turns a panic of f into an error: hostile files must not end the
// process, also in a goroutine of their own.
func Protect(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("internal error: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}
