package flux

import (
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// maxFile is the largest file of a tree that is read.
const maxFile = 4 << 20

// Files reads the part of a checkout that a folder in it is in: everything below the first part of the folder's path.
func Files(checkout fs.FS, folder string) (filesys.FileSystem, error) {
	files := filesys.MakeFsInMemory()
	top, _, _ := strings.Cut(Clean(folder), "/")
	err := fs.WalkDir(checkout, top, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxFile {
			return err
		}
		text, err := fs.ReadFile(checkout, name)
		if err != nil {
			return err
		}
		return files.WriteFile(name, text)
	})
	return files, err
}
