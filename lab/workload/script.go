package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	shellenv "mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// utilities are the programs that a script may call, beside the shell's own: echo, test, exit and so on.
var utilities = map[string]func(*volumeScript, interp.HandlerContext, []string) error{
	"cat": (*volumeScript).cat, "sync": (*volumeScript).sync, "rm": (*volumeScript).rm,
}

// shells are the programs whose scripts the lab runs.
var shells = []string{"sh", "bash", "ash", "dash"}

// builtins are the shell's own commands that the lab runs. Others could leave the volumes.
var builtins = []string{"true", "false", ":", "echo", "printf", "test", "[", "exit", "set"}

func parseShell(text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), "")
}

// volumeScript runs a shell script of a container that mounts volumes of claims. The script sees nothing but the files in those volumes.
// User ids, modes and folders in volumes are not modelled.
type volumeScript struct {
	c      Container
	script *syntax.File
	roots  map[string]string // folders of volumes, by the path at which the container has them
}

// scriptOf returns the script of a container with volumes of claims; nil if it has none, or a script that calls other programs.
func scriptOf(c Container) *volumeScript {
	command := c.command()
	if len(c.Claims) == 0 || len(command) != 3 || !slices.Contains(shells, base(command[0])) || command[1] != "-c" {
		return nil
	}
	file, err := parseShell(command[2])
	if err != nil {
		return nil
	}
	s := &volumeScript{c: c, script: file, roots: map[string]string{}}
	for _, mount := range c.Spec.VolumeMounts {
		if folder := c.Claims[mount.Name]; folder != "" && mount.SubPath == "" {
			s.roots[path.Clean(mount.MountPath)] = folder
		}
	}
	if len(s.roots) == 0 || !s.isKnown() {
		return nil
	}
	return s
}

// isKnown tells whether the script calls only what the lab can run.
func (s *volumeScript) isKnown() bool {
	known := true
	syntax.Walk(s.script, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				name := n.Args[0].Lit()
				known = known && (utilities[name] != nil || slices.Contains(builtins, name))
			}
		case *syntax.FuncDecl, *syntax.ProcSubst:
			known = false
		}
		return true
	})
	return known
}

// run runs the script and returns its exit code.
func (s *volumeScript) run(ctx context.Context) int {
	runner, err := interp.New(interp.StdIO(nil, s.c.Log, s.c.Log), interp.Env(shellenv.ListEnviron()), interp.Dir("/"),
		interp.OpenHandler(s.open), interp.StatHandler(s.stat),
		interp.ReadDirHandler2(func(context.Context, string) ([]fs.DirEntry, error) { return nil, fs.ErrNotExist }),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }))
	if err != nil {
		fmt.Fprintln(s.c.Log, err)
		return 2
	}
	err = runner.Run(ctx, s.script)
	var exit interp.ExitStatus
	switch {
	case errors.As(err, &exit):
		return int(exit)
	case err != nil:
		fmt.Fprintln(s.c.Log, err)
		return 1
	}
	return 0
}

func (s *volumeScript) exec(ctx context.Context, args []string) error {
	if utility := utilities[args[0]]; utility != nil {
		return utility(s, interp.HandlerCtx(ctx), args[1:])
	}
	fmt.Fprintf(interp.HandlerCtx(ctx).Stderr, "sh: %s: not found\n", args[0])
	return interp.ExitStatus(127)
}

// at returns the folder of the volume with a path, and the path in it.
func (s *volumeScript) at(name string) (root *os.Root, rest string, err error) {
	name = path.Clean("/" + name)
	for point, folder := range s.roots {
		if inside, is := strings.CutPrefix(name, point+"/"); is {
			root, err = os.OpenRoot(folder)
			return root, inside, err
		}
		if name == point {
			root, err = os.OpenRoot(folder)
			return root, ".", err
		}
	}
	return nil, "", fs.ErrNotExist
}

func (s *volumeScript) open(_ context.Context, name string, flag int, mode os.FileMode) (io.ReadWriteCloser, error) {
	if name == os.DevNull {
		return nothing{}, nil
	}
	root, rest, err := s.at(name)
	if err != nil {
		if flag&(os.O_WRONLY|os.O_RDWR) != 0 && errors.Is(err, fs.ErrNotExist) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("read-only file system")}
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	defer root.Close()
	return root.OpenFile(rest, flag, mode.Perm())
}

func (s *volumeScript) stat(_ context.Context, name string, follow bool) (fs.FileInfo, error) {
	root, rest, err := s.at(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if follow {
		return root.Stat(rest)
	}
	return root.Lstat(rest)
}

// cat writes files to the standard output.
func (s *volumeScript) cat(hc interp.HandlerContext, names []string) error {
	status := error(nil)
	for _, name := range names {
		content, err := s.read(name)
		if err != nil {
			fmt.Fprintf(hc.Stderr, "cat: %s: %v\n", name, cause(err))
			status = interp.ExitStatus(1)
			continue
		}
		if _, err := io.Copy(hc.Stdout, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	return status
}

func (s *volumeScript) read(name string) ([]byte, error) {
	root, rest, err := s.at(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(rest)
}

// sync does nothing: what was written is in the machine's file system already.
func (s *volumeScript) sync(interp.HandlerContext, []string) error { return nil }

// rm removes files.
func (s *volumeScript) rm(hc interp.HandlerContext, names []string) error {
	force, status := false, error(nil)
	for _, name := range names {
		if strings.HasPrefix(name, "-") {
			force = force || strings.Contains(name, "f")
			continue
		}
		root, rest, err := s.at(name)
		if err == nil {
			err = errors.Join(root.Remove(rest), root.Close())
		}
		if err != nil && !(force && errors.Is(err, fs.ErrNotExist)) {
			fmt.Fprintf(hc.Stderr, "rm: %s: %v\n", name, cause(err))
			status = interp.ExitStatus(1)
		}
	}
	return status
}

// cause is the system's error in an error about a path.
func cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// nothing is /dev/null.
type nothing struct{}

func (nothing) Read([]byte) (int, error)    { return 0, io.EOF }
func (nothing) Write(b []byte) (int, error) { return len(b), nil }
func (nothing) Close() error                { return nil }
