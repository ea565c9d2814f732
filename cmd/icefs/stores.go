package main

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/icefs/icefs/internal/source/remote"
	"github.com/icefs/icefs/internal/source/s3"
)

// storeOptions are the flags for object stores. No secret is among them: command
// lines are for all to see.
type storeOptions struct {
	properties map[string]string // of the flags
	file       string
}

func (o *storeOptions) add(set *pflag.FlagSet) {
	o.properties = make(map[string]string)
	property := func(name string) *textFlag {
		return &textFlag{"", "VALUE", func(s string) error { o.properties[name] = s; return nil }}
	}
	boolean := func(flag, name, usage string) {
		set.Var(&textFlag{"", "BOOL", func(s string) error {
			if _, err := strconv.ParseBool(s); err != nil {
				return fmt.Errorf("want true or false")
			}
			o.properties[name] = s
			return nil
		}}, flag, usage)
		set.Lookup(flag).NoOptDefVal = "true"
	}
	set.Var(property("s3.endpoint"), "s3-endpoint", "URL of a store that speaks S3 (default Amazon's)")
	set.Var(property("s3.region"), "s3-region", "region of the bucket (default as configured for the AWS SDK, else asked for)")
	set.Var(property("s3.profile-name"), "s3-profile", "profile of ~/.aws to take credentials from")
	boolean("s3-anonymous", "s3.anonymous", "read public buckets without credentials")
	boolean("s3-path-style", "s3.path-style-access", "put the bucket into the URL's path (default: with --s3-endpoint)")
	set.Var(&textFlag{"", "NAME=VALUE", o.setProperty}, "property", "file-IO property of Iceberg, such as gcs.no-auth=true (repeatable); secrets go into a --properties-file")
	set.StringVar(&o.file, "properties-file", "", "`FILE` with a line NAME=VALUE for each property, readable by its owner alone")
}

func (o *storeOptions) setProperty(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return fmt.Errorf("want NAME=VALUE")
	}
	if isSecret(name) {
		return fmt.Errorf("%s is a secret, which every user can see on a command line: put it into a --properties-file", name)
	}
	o.properties[name] = value
	return nil
}

// isSecret reports whether a property's value may be one.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"secret", "token", "password", "credential", "key", "sas", "connection-string", "authorization"} {
		if strings.Contains(name, word) && !strings.HasSuffix(name, "keypath") && !strings.HasSuffix(name, "account.name") {
			return true
		}
	}
	return false
}

// read returns the properties of the file and, before them, of the flags.
func (o *storeOptions) read() (map[string]string, error) {
	if o.file == "" {
		return o.properties, nil
	}
	f, err := os.Open(o.file)
	if err != nil {
		return nil, fmt.Errorf("properties file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("properties file: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("properties file %s: others may read it: chmod 600 %[1]s", o.file)
	}
	properties := make(map[string]string)
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("properties file %s: line %d is not NAME=VALUE", o.file, n)
		}
		properties[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("properties file %s: %w", o.file, err)
	}
	maps.Copy(properties, o.properties)
	return properties, nil
}

// aheadPart is the part of the memory budget that may be fetched from object
// stores before it is asked for; more than the default brings nothing.
const aheadPart = 16

// openStores makes the stores that the program was built with.
func (s *session) openStores() *remote.Stores {
	opt := remote.Options{
		Schemes: slices.Concat([]remote.Scheme{s3.Scheme()}, gcsSchemes(), azureSchemes()),
		Memory:  s.memory,
		Timeout: s.opt.timeout,
		Log:     s.log,
		Stats:   &s.requests,

		AheadBytes: min(s.opt.memory/aheadPart, remote.DefaultAheadBytes),
	}
	if s.disk != nil {
		opt.Disk = s.disk
	}
	return remote.New(opt)
}

// remote reports whether tables may be in an object store.
func (s *session) remote() bool { return s.catalog.Remote() }
