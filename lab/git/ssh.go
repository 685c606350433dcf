package git

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// SSH is the same repository over SSH. Its folder has the keys:
//
//	host_key      private key of the host
//	known_hosts   its public key, for each name of the host, in the form of OpenSSH
//	identity      private key of a user whom the host knows
//	authorized/   further public keys that the host accepts, one in each file NAME.pub
//
// Users are known by their keys alone, whatever their name. Only git-upload-pack is modelled.
type SSH struct {
	Server *Server
	Dir    string   // its folder; made with keys at the first start
	Hosts  []string // names of the host with their ports, HOST:PORT
}

// Files of the folder.
const (
	hostKeyFile    = "host_key"
	knownHostsFile = "known_hosts"
	identityFile   = "identity"
	authorizedDir  = "authorized"
)

// Serve accepts connections until ctx ends or the listener is closed.
func (s *SSH) Serve(ctx context.Context, listener net.Listener) error {
	config, err := s.config()
	if err != nil {
		return fmt.Errorf("lab git: SSH: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		defer stop()
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(ctx, connection, config)
		}
	}()
	return nil
}

// config makes the keys that are missing.
func (s *SSH) config() (*ssh.ServerConfig, error) {
	if err := os.MkdirAll(filepath.Join(s.Dir, authorizedDir), 0o700); err != nil {
		return nil, err
	}
	host, err := key(filepath.Join(s.Dir, hostKeyFile))
	if err != nil {
		return nil, err
	}
	if _, err := key(filepath.Join(s.Dir, identityFile)); err != nil {
		return nil, err
	}
	public := string(ssh.MarshalAuthorizedKey(host.PublicKey()))
	lines := ""
	for _, name := range s.Hosts {
		if at, port, err := net.SplitHostPort(name); err == nil && port == "22" {
			name = at
		} else if err == nil {
			name = "[" + at + "]:" + port
		}
		lines += name + " " + public
	}
	if err := os.WriteFile(filepath.Join(s.Dir, knownHostsFile), []byte(lines), 0o600); err != nil {
		return nil, err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, offered ssh.PublicKey) (*ssh.Permissions, error) {
		if !s.Server.refused() && s.knows(offered) {
			return &ssh.Permissions{}, nil
		}
		return nil, errors.New("unknown key")
	}}
	config.AddHostKey(host)
	return config, nil
}

// key reads a private key, which it makes if there is none.
func key(path string) (ssh.Signer, error) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the lab
	if errors.Is(err, os.ErrNotExist) {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, err
		}
		block, err := ssh.MarshalPrivateKey(private, "lab")
		if err != nil {
			return nil, err
		}
		text = pem.EncodeToMemory(block)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKey(text)
}

// knows reports whether a key is that of the identity, or in the folder of authorized keys, which is read at each login.
func (s *SSH) knows(offered ssh.PublicKey) bool {
	if identity, err := key(filepath.Join(s.Dir, identityFile)); err == nil && bytes.Equal(identity.PublicKey().Marshal(), offered.Marshal()) {
		return true
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, authorizedDir, "*.pub"))
	if err != nil {
		return false
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the lab
		if err != nil {
			continue
		}
		if known, _, _, _, err := ssh.ParseAuthorizedKey(text); err == nil && bytes.Equal(known.Marshal(), offered.Marshal()) {
			return true
		}
	}
	return false
}

func (s *SSH) serve(ctx context.Context, raw net.Conn, config *ssh.ServerConfig) {
	connection, channels, requests, err := ssh.NewServerConn(raw, config)
	if err != nil {
		_ = raw.Close()
		return
	}
	defer connection.Close() //nolint:errcheck // nothing is lost
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions are modelled")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.session(ctx, channel, requests)
	}
}

// session runs the one command that the client asks for.
func (s *SSH) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close() //nolint:errcheck // nothing is lost
	protocol := ""
	for request := range requests {
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			if ssh.Unmarshal(request.Payload, &variable) == nil && variable.Name == "GIT_PROTOCOL" {
				protocol = variable.Value
			}
			_ = request.Reply(true, nil)
		case "exec":
			var command struct{ Text string }
			if err := ssh.Unmarshal(request.Payload, &command); err != nil {
				_ = request.Reply(false, nil)
				return
			}
			_ = request.Reply(true, nil)
			status := struct{ Status uint32 }{s.run(ctx, command.Text, protocol, channel)}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(&status))
			return
		default:
			_ = request.Reply(false, nil)
		}
	}
}

// run runs git-upload-pack for the repository, and returns its exit status.
func (s *SSH) run(ctx context.Context, command, protocol string, channel ssh.Channel) uint32 {
	refuse := func(words string) uint32 {
		fmt.Fprintf(channel.Stderr(), "%s\n", words)
		return 128
	}
	program, path, _ := strings.Cut(command, " ")
	path = strings.Trim(path, "'")
	switch _, words, broken := s.Server.broken(); {
	case broken:
		return refuse("fatal: " + words)
	case program != "git-upload-pack":
		return refuse("fatal: " + program + " is not allowed: this host is read-only")
	case "/"+strings.TrimPrefix(path, "/") != s.Server.Path:
		return refuse("fatal: '" + path + "' does not appear to be a git repository")
	}
	if err := s.Server.update(ctx); err != nil {
		s.Server.Log.Error("git update", "err", err)
		return refuse("fatal: " + err.Error())
	}
	//nolint:gosec // a folder of the lab
	upload := exec.CommandContext(ctx, "git", "-c", "safe.directory=*", "upload-pack", "--strict", s.Server.Dir)
	upload.Stdin, upload.Stdout, upload.Stderr = channel, channel, channel.Stderr()
	upload.Env = append(os.Environ(), "GIT_PROTOCOL="+protocol,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	var failed *exec.ExitError
	switch err := upload.Run(); {
	case errors.As(err, &failed):
		return uint32(max(1, failed.ExitCode())) //nolint:gosec // a byte
	case err != nil:
		return refuse("fatal: " + err.Error())
	}
	return 0
}
