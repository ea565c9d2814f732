package main

import (
	"net"
	"os"
	"strings"
)

// What sd_notify(3) understands.
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

// notify tells the service manager, if it waits for it (Type=notify), what state
// icefs is in. status is one line for people.
func notify(state, status string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	if strings.HasPrefix(name, "@") { // of Linux's abstract name space
		name = "\x00" + name[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state + "\nSTATUS=" + strings.ReplaceAll(status, "\n", " ")))
	return err
}
