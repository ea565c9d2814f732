package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const completionHelp = `Load it at the start of a shell:
  bash: icefs completion bash > /etc/bash_completion.d/icefs
  zsh:  icefs completion zsh > "${fpath[1]}/_icefs"
  fish: icefs completion fish > ~/.config/fish/completions/icefs.fish
`

// completionCommand writes a shell's completion of icefs.
func completionCommand() (*pflag.FlagSet, runner) {
	return newFlags("completion"), func(_ context.Context, args []string, out console) error {
		const shells = "bash, zsh or fish"
		if err := wantArgs(args, 1, 1, shells); err != nil {
			return err
		}
		w := bufio.NewWriter(out.out)
		switch args[0] {
		case "bash":
			completeBash(w)
		case "zsh":
			completeZsh(w)
		case "fish":
			completeFish(w)
		default:
			return usageError{"want " + shells}
		}
		return w.Flush()
	}
}

// completed is a flag as shells complete it.
type completed struct {
	name, short, usage string
	value              bool     // it takes one
	words              []string // what the value can be; nil = a path or anything
}

// flagsOf lists a command's flags.
func flagsOf(c *command) []completed {
	set, _ := c.setup()
	var list []completed
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		_, usage := pflag.UnquoteUsage(f)
		list = append(list, completed{f.Name, f.Shorthand, usage, f.NoOptDefVal == "", valuesOf(f.Name)})
	})
	return append(list, completed{name: "help", short: "h", usage: "tell about the command"})
}

// valuesOf are the words that a flag's value can be, where they are few.
func valuesOf(flag string) []string {
	switch flag {
	case "views":
		return []string{"parquet", "csv", "jsonl", "parts", "parts.csv", "parts.jsonl"}
	case "statistics":
		return []string{"auto", "exact", "none", "all"}
	case "history":
		return []string{"all", "refs", "hidden"}
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	case "log-format":
		return []string{"text", "json"}
	}
	return nil
}

// firstArgument are the words a command's argument can be; nil = a path.
func firstArgument(c *command) []string {
	if c.name == "completion" {
		return []string{"bash", "zsh", "fish"}
	}
	return nil
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return append(names, "help")
}

// completeBash writes a function that offers commands, flags, values and paths.
func completeBash(w io.Writer) {
	fmt.Fprint(w, "# bash completion of icefs, made by 'icefs completion bash'\n"+
		"_icefs() {\n"+
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"+
		"\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n")
	fmt.Fprintf(w, "\t\tCOMPREPLY=($(compgen -W '%s' -- \"$word\"))\n\t\treturn\n\tfi\n", strings.Join(commandNames(), " "))
	fmt.Fprint(w, "\tcase $before in\n")
	for _, f := range allFlags() {
		if f.words != nil {
			fmt.Fprintf(w, "\t--%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", f.name, strings.Join(f.words, " "))
		}
	}
	fmt.Fprint(w, "\tesac\n\tcase ${COMP_WORDS[1]} in\n")
	for _, c := range commands() {
		var names []string
		for _, f := range flagsOf(c) {
			names = append(names, "--"+f.name)
		}
		fmt.Fprintf(w, "\t%s) words='%s' ;;\n", c.name, strings.Join(names, " "))
	}
	fmt.Fprintf(w, "\thelp) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n\tesac\n", strings.Join(commandNames(), " "))
	fmt.Fprint(w, "\tcase $word in\n"+
		"\t-*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"+
		"\t*) case ${COMP_WORDS[1]} in\n")
	for _, c := range commands() {
		if words := firstArgument(c); words != nil {
			fmt.Fprintf(w, "\t\t%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", c.name, strings.Join(words, " "))
		}
	}
	fmt.Fprint(w, "\t\tesac\n\t\tcompopt -o filenames 2>/dev/null\n\t\tlocal IFS=$'\\n'\n\t\tCOMPREPLY=($(compgen -f -- \"$word\")) ;;\n\tesac\n}\ncomplete -F _icefs icefs\n")
}

// allFlags are the flags of all commands, each name once.
func allFlags() []completed {
	var list []completed
	for _, c := range commands() {
		for _, f := range flagsOf(c) {
			if !slices.ContainsFunc(list, func(o completed) bool { return o.name == f.name }) {
				list = append(list, f)
			}
		}
	}
	return list
}

// completeZsh writes a function for zsh's completion system.
func completeZsh(w io.Writer) {
	fmt.Fprint(w, "#compdef icefs\n# zsh completion of icefs, made by 'icefs completion zsh'\n_icefs() {\n"+
		"\tlocal context state state_descr line\n\ttypeset -A opt_args\n"+
		"\tlocal -a commands=(\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "\t\t%s\n", quoteShell(c.name+":"+c.short))
	}
	fmt.Fprint(w, "\t)\n\t_arguments -C '1:command:->command' '*::argument:->argument' && return\n"+
		"\tcase $state in\n\tcommand) _describe command commands ;;\n\targument)\n\t\tcase $words[1] in\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "\t\t%s) _arguments -s", c.name)
		for _, f := range flagsOf(c) {
			spec := "--" + f.name + "[" + strings.NewReplacer("[", "(", "]", ")", ":", ";").Replace(f.usage) + "]"
			switch {
			case f.words != nil:
				spec += ":value:(" + strings.Join(f.words, " ") + ")"
			case f.value:
				spec += ":value:_files"
			}
			fmt.Fprintf(w, " \\\n\t\t\t%s", quoteShell(spec))
		}
		if words := firstArgument(c); words != nil {
			fmt.Fprintf(w, " \\\n\t\t\t'1:shell:(%s)' ;;\n", strings.Join(words, " "))
		} else {
			fmt.Fprint(w, " \\\n\t\t\t'*:path:_files' ;;\n")
		}
	}
	fmt.Fprint(w, "\t\tesac ;;\n\tesac\n}\n_icefs \"$@\"\n")
}

// completeFish writes fish's complete commands.
func completeFish(w io.Writer) {
	fmt.Fprint(w, "# fish completion of icefs, made by 'icefs completion fish'\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "complete -c icefs -n __fish_use_subcommand -f -a %s -d %s\n", c.name, quoteFish(c.short))
	}
	for _, c := range commands() {
		when := "'__fish_seen_subcommand_from " + c.name + "'"
		for _, f := range flagsOf(c) {
			line := "complete -c icefs -n " + when + " -l " + f.name
			if f.short != "" {
				line += " -s " + f.short
			}
			switch {
			case f.words != nil:
				line += " -x -a '" + strings.Join(f.words, " ") + "'"
			case f.value:
				line += " -r"
			}
			fmt.Fprintf(w, "%s -d %s\n", line, quoteFish(f.usage))
		}
		if words := firstArgument(c); words != nil {
			fmt.Fprintf(w, "complete -c icefs -n %s -f -a '%s'\n", when, strings.Join(words, " "))
		}
	}
}

// quoteShell makes one word of bash and zsh.
func quoteShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteFish makes one word of fish.
func quoteFish(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}
