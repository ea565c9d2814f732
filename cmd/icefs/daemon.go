package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A daemon is the same command run again in a session of its own. It says that
// it is ready by a byte on descriptor readyFD; until then its standard error
// leads to the process that started it.

// daemonEnv is set in the environment of the daemon.
const daemonEnv = "ICEFS_DAEMON"

// readyFD is the daemon's end of the pipe it reports on.
const readyFD = 3

// startDaemon runs this command line again and returns when it serves, or with
// its error.
func startDaemon(out console) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer readyR.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer errR.Close()
	child := exec.Command(self, os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Env = append(os.Environ(), daemonEnv+"=1")
	child.Stderr = errW
	child.ExtraFiles = []*os.File{readyW}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return err
	}
	readyW.Close()
	errW.Close()
	said := make(chan string)
	go func() {
		var text bytes.Buffer
		io.Copy(&text, errR) // ends when the daemon lets go of its standard error
		said <- text.String()
	}()
	ready, _ := io.ReadAll(readyR)
	text := strings.TrimSpace(<-said)
	if len(ready) > 0 {
		if text != "" {
			fmt.Fprintln(out.err, text)
		}
		return child.Process.Release()
	}
	if err := child.Wait(); text == "" {
		return fmt.Errorf("the daemon ended before it was ready: %w", err)
	}
	return errors.New(strings.TrimPrefix(text, "icefs: "))
}

// daemonReady tells the starting process, if there is one, that the tree can be
// read, and lets go of its standard error: what comes later goes to the log file
// or nowhere.
func daemonReady(logFile *os.File) error {
	if os.Getenv(daemonEnv) == "" {
		return nil
	}
	if logFile == nil {
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer null.Close()
		logFile = null
	}
	if err := unix.Dup2(int(logFile.Fd()), int(os.Stderr.Fd())); err != nil {
		return err
	}
	ready := os.NewFile(readyFD, "ready")
	defer ready.Close()
	_, err := ready.Write([]byte{1})
	return err
}
