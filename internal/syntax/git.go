package syntax

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

const forSSH = "is for SSH, and Flux is given a user name and password"

var (
	usernameForm = regexp.MustCompile(`^[!-9;-~]{1,255}$`)
	placeholder  = regexp.MustCompile(`<[^>]*>|[$][{(]|[{][{]`)
	folderForm   = regexp.MustCompile(`^[0-9A-Za-z ._@+=,/-]+$`)
)

var gitRules = []rule{
	{
		// What git check-ref-format has for refs/heads/NAME, and git branch for NAME. Letters of all scripts are allowed.
		name: "git-branch", what: "the name of a branch", words: "name of a branch", example: "main", anyScript: true,
		pattern: `^[^-\x00- /.~^:?*\[\\\x7f]([^\x00- ~^:?*\[\\\x7f]*[^\x00- /.~^:?*\[\\\x7f])?$`,
		check:   branchFault, mend: mendBranch,
	},
	{
		name: "repository-path", what: "a folder of the repository", words: "relative folder", example: "kubernetes/clusters/infra",
		pattern: `^[0-9A-Za-z ._@+=,-][0-9A-Za-z ._@+=,/-]*$`, check: folderFault, mend: mendFolder,
		remedy: "write a folder of the repository, such as kubernetes/clusters/infra",
	},
	{
		name: "git-username", what: "a user name", words: "text without spaces and colons", example: "flux", secret: true,
		pattern: usernameForm.String(),
		check: func(value string) *Fault {
			switch {
			case tokenPrefix.MatchString(value):
				return because("is a token and no user name", "revoke it, write the user's name here, and set the new one as gitPassword")
			case strings.Contains(value, ":"):
				return because("has a colon in it, behind which a password begins", "write only the user name")
			case strings.Contains(value, " "):
				return because("has a space in it", "write it without")
			case placeholder.MatchString(value):
				return because("has a placeholder in it", "write what it stands for")
			}
			return matches(usernameForm)(value)
		},
	},
}

func branchFault(value string) *Fault {
	parts := strings.Split(value, "/")
	has := func(test func(part string) bool) bool { return slices.ContainsFunc(parts, test) }
	switch {
	case strings.HasPrefix(value, "refs/heads/"):
		return because("is written with refs/heads/, which is added to it")
	case strings.HasPrefix(value, "refs/"):
		return because("is a reference that is no branch", "write the name of a branch, such as main")
	case value == "HEAD" || value == "@":
		return because("stands for whatever branch is checked out", "write the name of a branch, such as main")
	case strings.HasPrefix(value, "-"):
		return because("begins with -, as an option does")
	case placeholder.MatchString(value):
		return because("has a placeholder in it", "write what it stands for")
	case strings.ContainsAny(value, ` ~^:?*[\`):
		return because(`has a space or one of ~ ^ : ? * [ \ in it, which Git keeps for itself`)
	case strings.Contains(value, "..") || strings.Contains(value, "@{"):
		return because("has .. or @{ in it, which Git keeps for itself")
	case has(func(part string) bool { return part == "" }):
		return because("has a / at an end, or two in a row")
	case has(func(part string) bool { return strings.HasPrefix(part, ".") }) || strings.HasSuffix(value, "."):
		return because("has a part that begins with a dot, or ends in one")
	case has(func(part string) bool { return strings.HasSuffix(part, ".lock") }):
		return because("has a part that ends in .lock, which Git keeps for itself")
	}
	return nil
}

func mendBranch(value string) []string {
	bare := strings.Trim(strings.TrimPrefix(strings.Trim(value, "/"), "refs/heads/"), "/")
	for strings.Contains(bare, "//") {
		bare = strings.ReplaceAll(bare, "//", "/")
	}
	return []string{bare, strings.TrimLeft(strings.ReplaceAll(bare, " ", "-"), "-")}
}

func folderFault(value string) *Fault {
	bare := strings.TrimPrefix(value, "./")
	parts := strings.Split(strings.TrimSuffix(bare, "/"), "/")
	switch {
	case value == "." || value == "./":
		return nil
	case strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~"):
		return because("is not relative to the repository")
	case strings.Contains(value, `\`):
		return because("has a backslash in it")
	case strings.Contains(value, "://"):
		return because("is a URL and no folder of the repository")
	case strings.ContainsAny(value, "<>{}$"):
		return because("has a placeholder in it", "write what it stands for")
	case slices.Contains(parts, ".."):
		return because("has .. in it", "write the folder without it")
	case slices.Contains(parts, "") || slices.Contains(parts, "."):
		return because("has an empty part in it, or a single dot")
	case slices.ContainsFunc(parts, func(part string) bool { return strings.EqualFold(part, ".git") }):
		return because("is in Git's own folder, which Flux does not get")
	case slices.ContainsFunc(parts, func(part string) bool { return strings.TrimSpace(part) != part }):
		return because("has a space before or after a slash")
	case !folderForm.MatchString(value):
		return because("has other characters than letters, digits, spaces and . _ - + = , @")
	}
	return nil
}

func mendFolder(value string) []string {
	if strings.Contains(value, "..") || strings.Contains(value, ":") {
		return nil
	}
	bare := strings.TrimLeft(strings.ReplaceAll(value, `\`, "/"), "/")
	return []string{path.Clean(bare)}
}

func gitURLFault(value string) *Fault {
	scheme, _, found := strings.Cut(strings.ToLower(value), "://")
	switch {
	case found && (scheme == "ssh" || scheme == "git+ssh"), !found && scpForm.MatchString(value):
		return because(forSSH)
	}
	path, fault := checkURL(value, "https")
	switch {
	case fault != nil:
		return fault
	case strings.Trim(path, "/") == "":
		return because("is only a host", "add the repository's path")
	case strings.HasPrefix(value, "https://github.com/") && !strings.Contains(strings.Trim(path, "/"), "/"):
		return because("is an account of GitHub's", "add the repository's name")
	case pageOf(value) != "":
		return because("is a page about the repository, not the repository")
	}
	return nil
}

// pageOf returns the URL of the repository that a page of GitHub or GitLab is about, or "".
func pageOf(value string) string {
	if repository, _, found := strings.Cut(value, "/-/"); found {
		return repository
	}
	rest, found := strings.CutPrefix(value, "https://github.com/")
	if parts := strings.Split(strings.TrimSuffix(rest, "/"), "/"); found && len(parts) > 2 {
		return "https://github.com/" + parts[0] + "/" + parts[1]
	}
	return ""
}

// mendGitURL makes an https URL of the forms that SSH has, and of a page about a repository.
func mendGitURL(value string) []string {
	if match := scpForm.FindStringSubmatch(value); match != nil {
		return []string{"https://" + match[1] + "/" + strings.Trim(match[2], "/")}
	}
	lower := strings.ToLower(value)
	for _, scheme := range []string{"ssh://", "git+ssh://", "git://"} {
		if !strings.HasPrefix(lower, scheme) {
			continue
		}
		authority, path := cutAny(value[len(scheme):], "/?#")
		if strings.ContainsAny(path, "@?#") {
			return nil
		}
		host, _, _ := strings.Cut(authority[strings.LastIndex(authority, "@")+1:], ":") // the port is SSH's
		return []string{"https://" + host + path}
	}
	if repository := pageOf(value); repository != "" {
		return []string{repository}
	}
	return mendURL(value, "https")
}
