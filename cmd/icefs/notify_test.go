package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := notify(notifyReady, "nobody listens"); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	abstract := "@icefs-test-" + filepath.Base(t.TempDir()) + time.Now().Format("150405.000000000")
	for env, name := range map[string]string{path: path, abstract: "\x00" + abstract[1:]} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		t.Setenv("NOTIFY_SOCKET", env)
		if err := notify(notifyStopping, "two\nlines"); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		l.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, err := l.Read(buf)
		if err != nil || string(buf[:n]) != "STOPPING=1\nSTATUS=two lines" {
			t.Errorf("%q, %v", buf[:n], err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	if err := notify(notifyReady, "x"); err == nil {
		t.Error("a socket that is not there is no error")
	}
}
