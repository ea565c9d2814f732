// Command front stands before an S3 store and counts what it is asked: requests,
// those for bytes of objects, and bytes. It can delay and fail requests.
//
//	front -to http://127.0.0.1:7070 -listen 127.0.0.1:7071 -delay 50ms -rate 0.01
//
// GET /-/counts answers the counts since the last time, as JSON.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"sync"

	"github.com/icefs/icefs/internal/source/storetest"
)

func main() {
	to := flag.String("to", "http://127.0.0.1:7070", "URL of the store")
	listen := flag.String("listen", "127.0.0.1:7071", "address to listen on")
	delay := flag.Duration("delay", 0, "delay of each request")
	rate := flag.Float64("rate", 0, "how many of the requests fail, from 0 to 1")
	flag.Parse()
	front, err := storetest.NewFront(*to)
	if err != nil {
		log.Fatal(err)
	}
	front.Set(storetest.Faults{Delay: *delay, Rate: *rate})
	var mu sync.Mutex
	var last storetest.Counts
	mux := http.NewServeMux()
	mux.Handle("/", front)
	mux.HandleFunc("/-/counts", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		now := front.Counts()
		_ = json.NewEncoder(w).Encode(now.Since(last))
		last = now
	})
	log.Fatal(http.ListenAndServe(*listen, mux))
}
