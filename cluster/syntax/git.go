package syntax

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/cluster/secrecy"
)

const (
	sshUser  = `[0-9A-Za-z_][0-9A-Za-z._-]*`
	scpShort = "is in Git's short form for SSH, which Flux does not read"
)

var (
	sshUserForm  = regexp.MustCompile(`^` + sshUser + `$`)
	portlessForm = regexp.MustCompile(`^([^:/]+):([^0-9/].*)$`) // a path behind the colon, as in Git's short form
	placeholder  = regexp.MustCompile(`<[^>]*>|[$][{(]|[{][{]`)
	folderForm   = regexp.MustCompile(`^[0-9A-Za-z ._@+=,/-]+$`)
)

var gitForms = []Form{
	{
		// What git check-ref-format has for refs/heads/NAME, and git branch for NAME. Letters of all scripts are allowed.
		Name: "git-branch", What: "the name of a branch", Words: "name of a branch", Example: "main", anyScript: true,
		Pattern: `^[^-\x00- /.~^:?*\[\\\x7f]([^\x00- ~^:?*\[\\\x7f]*[^\x00- /.~^:?*\[\\\x7f])?$`,
		check:   branchFault, fix: fixBranch,
	},
	{
		Name: "repository-path", What: "a folder of the repository", Words: "relative folder", Example: "kubernetes/clusters/infra",
		Pattern: `^[0-9A-Za-z ._@+=,-][0-9A-Za-z ._@+=,/-]*$`, check: folderFault, fix: fixFolder,
		remedy: "write a folder of the repository, such as kubernetes/clusters/infra",
	},
	{
		Name: "github-account", What: "an account of GitHub's", Words: "name of a GitHub account", Example: "slipway-platform",
		Pattern: `^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`, fix: fixAccount,
		check: refusing(secrecy.IsToken, "is a token and no account"),
	},
	{
		Name: "git-username", What: "a user name", Words: "text without spaces and colons", Example: "flux", Secret: true,
		Pattern: `^[!-9;-~]{1,255}$`,
		check: func(value string) *Fault {
			switch {
			case secrecy.IsToken(value):
				return because("is a token and no user name", "revoke it, write the user's name here, and set the new one as gitPassword")
			case strings.Contains(value, ":"):
				return because("has a colon in it, behind which a password begins", "write only the user name")
			case strings.Contains(value, " "):
				return because("has a space in it", "write it without")
			case placeholder.MatchString(value):
				return because("has a placeholder in it", "write what it stands for")
			}
			return nil
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

func fixBranch(value string) []string {
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

func fixFolder(value string) []string {
	if strings.Contains(value, "..") || strings.Contains(value, ":") {
		return nil
	}
	bare := strings.TrimLeft(strings.ReplaceAll(value, `\`, "/"), "/")
	return []string{path.Clean(bare)}
}

// fixAccount takes the account from a URL, from OWNER/REPOSITORY and from @ACCOUNT.
func fixAccount(value string) []string {
	account, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(value, "https://github.com/"), "@"), "/")
	return []string{account}
}

func gitURLFault(value string) *Fault {
	if !strings.Contains(value, "://") && scpForm.MatchString(value) {
		return because(scpShort)
	}
	path, fault := checkGitURL(value)
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

// checkGitURL checks the scheme, the user and the host, and returns the path. A user is allowed with ssh only, and no password.
func checkGitURL(value string) (path string, fault *Fault) {
	scheme, rest, _ := strings.Cut(value, "://")
	if !strings.EqualFold(scheme, "ssh") && !strings.EqualFold(scheme, "git+ssh") {
		return checkURL(value, "https", "ssh")
	}
	authority, below := cutAny(rest, "/?#")
	if user, host, found := strings.Cut(authority, "@"); found && sshUserForm.MatchString(user) && !secrecy.HasToken(user) {
		authority = host
	}
	if path, fault = checkURL("ssh://"+authority+below, "ssh"); fault == nil && scheme != "ssh" {
		return "", because("has another scheme than https or ssh")
	}
	return path, fault
}

// fixGitURL makes a URL of Git's short form for SSH, of URLs with the wrong scheme, and of a page about a repository.
func fixGitURL(value string) []string {
	if match := scpForm.FindStringSubmatch(value); match != nil {
		return withGitUser(value, match[1]+"/"+strings.Trim(match[2], "/"))
	}
	lower := strings.ToLower(value)
	for _, scheme := range []string{"git+ssh://", "ssh://"} {
		if !strings.HasPrefix(lower, scheme) {
			continue
		}
		authority, path := cutAny(value[len(scheme):], "/?#")
		if strings.ContainsAny(path, "@?#") {
			return nil
		}
		whole := authority[strings.LastIndex(authority, "@")+1:] + path
		if match := portlessForm.FindStringSubmatch(whole); match != nil {
			whole = match[1] + "/" + match[2]
		}
		return withGitUser(authority, whole)
	}
	if strings.HasPrefix(lower, "git://") {
		authority, path := cutAny(value[len("git://"):], "/?#")
		host, _, _ := strings.Cut(authority[strings.LastIndex(authority, "@")+1:], ":") // the port is that of Git's own protocol
		if strings.ContainsAny(path, "@?#") {
			return nil
		}
		return []string{"https://" + host + path}
	}
	if repository := pageOf(value); repository != "" {
		return []string{repository}
	}
	return fixURL(value, "https")
}

// withGitUser returns the ssh URL of a host and path: with the user git if the text names it, else without a user, which means git.
func withGitUser(text, hostAndPath string) []string {
	if strings.HasPrefix(text, "git@") {
		return []string{"ssh://git@" + hostAndPath}
	}
	if strings.Contains(text, "@") {
		return nil // the user is not known to be no secret
	}
	return []string{"ssh://" + hostAndPath}
}
