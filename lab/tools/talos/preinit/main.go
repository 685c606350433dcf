// preinit is /init of the initramfs: it loads the modules that Talos's own kernel has built in and Debian's has not, in the order of
// /modules/list, and then executes Talos's init.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func main() {
	list, err := os.ReadFile("/modules/list")
	if err != nil {
		fmt.Println("preinit:", err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		if err := load(filepath.Join("/modules", name)); err != nil {
			fmt.Printf("preinit: %s: %v\n", name, err)
		}
	}
	fmt.Println("preinit:", unix.Exec("/init.talos", []string{"/init"}, os.Environ()))
	select {} // the console shows why; without pid 1, the kernel would panic and hide it
}

// load loads a module's file, unless the kernel has the module.
func load(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.FinitModule(int(file.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}
