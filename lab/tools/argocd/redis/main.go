// Command redis stands in for Redis, whose sources are no Go module. It serves Redis's protocol from memory and takes Redis's own
// arguments: --port, --bind and --requirepass, which is REDIS_PASSWORD's value by default. It accepts every other setting, such as --save,
// and does nothing about it: persistence, limits of memory, replication and TLS are not modelled.
//
// Under the name redis-cli it sends one command to a server and prints the answer, for probes.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/proto"
)

func main() {
	run := serve
	if filepath.Base(os.Args[0]) == "redis-cli" {
		run = ask
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve serves until it gets a signal.
func serve(args []string) error {
	set, err := settings(args)
	if err != nil {
		return err
	}
	server := miniredis.NewMiniRedis()
	if password := cmp.Or(set["requirepass"], os.Getenv("REDIS_PASSWORD")); password != "" {
		server.RequireAuth(password)
	}
	at := net.JoinHostPort(set["bind"], cmp.Or(set["port"], "6379"))
	if err := server.StartAddr(at); err != nil {
		return err
	}
	defer server.Close()
	fmt.Println("Ready to accept connections tcp on", at)
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-end:
			return nil
		case now := <-tick.C: // without this, no key would ever expire
			server.FastForward(now.Sub(last))
			last = now
		}
	}
}

// settings reads Redis's arguments. Each begins with --, and may have its values in the same argument or in those that follow.
func settings(args []string) (map[string]string, error) {
	set := map[string]string{}
	name := ""
	for _, arg := range args {
		if setting, is := strings.CutPrefix(arg, "--"); is {
			name, arg, _ = strings.Cut(setting, " ")
			set[name] = arg
			continue
		}
		if name == "" {
			return nil, fmt.Errorf("%q: configuration files are not modelled by the lab", arg)
		}
		set[name] = strings.TrimSpace(set[name] + " " + arg)
	}
	return set, nil
}

// ask sends a command to a server.
func ask(args []string) error {
	flags := flag.NewFlagSet("redis-cli", flag.ContinueOnError)
	password := flags.String("a", os.Getenv("REDISCLI_AUTH"), "password")
	host := flags.String("h", "127.0.0.1", "host of the server")
	port := flags.String("p", "6379", "port of the server")
	flags.Bool("no-auth-warning", true, "accepted, because there is no warning")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no command: the lab's redis-cli has no dialogue")
	}
	client, err := proto.Dial(net.JoinHostPort(*host, *port))
	if err != nil {
		return err
	}
	defer client.Close()
	if *password != "" {
		if _, err := client.Do("AUTH", *password); err != nil {
			return err
		}
	}
	answer, err := client.Do(flags.Args()...)
	if err != nil {
		return err
	}
	fmt.Println(text(answer))
	return nil
}

// text is what redis-cli prints of an answer in Redis's protocol.
func text(answer string) string {
	if value, err := proto.ReadString(answer); err == nil {
		return value
	}
	return strings.TrimSpace(strings.TrimLeft(answer, "+-:"))
}
