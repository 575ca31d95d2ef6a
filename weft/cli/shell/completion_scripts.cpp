#include "weft/cli/shell/completion_scripts.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/config/field.h"

namespace weft::cli {
namespace {

using base::text;

// Options with a file or folder as value.
constexpr const char* kPaths[] = {"--config-file",
                                  "--against",
                                  "--out",
                                  "--svg",
                                  "--html",
                                  "--costs",
                                  "--calibration",
                                  "--read",
                                  "--write",
                                  "--schedule",
                                  "--log_dir",
                                  "--golden_values_path",
                                  "--save_config_filepath",
                                  "--pretrained_checkpoint",
                                  "--save_dir",
                                  "--load_dir"};

std::string joined(const std::vector<std::string>& words) {
  return text("{}", fmt::join(words, " "));
}

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) {
    if (command.name.find(' ') == std::string::npos) names.push_back(command.name);
  }
  return names;
}

Table first_words(const std::vector<CommandWords>& commands) {
  Table table;
  for (const CommandWords& each : commands) {
    if (!each.first.empty()) table.push_back({each.name, each.first});
  }
  return table;
}

Table own_options(const std::vector<CommandWords>& commands) {
  Table table;
  for (const CommandWords& each : commands) table.push_back({each.name, each.options});
  return table;
}

std::vector<std::string> with_run(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& each : commands) {
    if (each.takes_run) names.push_back(each.name);
  }
  return names;
}

// Recipes and their layouts are listed at completion time, since they change. Names with characters
// special to a shell are left out.
constexpr const char* kRecipeNames =
    "recipes --json 2>/dev/null | grep -oE '\"name\": *\"[A-Za-z0-9_.-]+\"' | cut -d '\"' -f 4";

// Bash, and zsh through its bashcompinit. Bash splits words at '=', zsh does not. The command's
// name in $1 may be a path.
constexpr const char* kBash = R"sh(_weft_files() {{
  local IFS=$'\n'
  type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$1"))
}}
_weft_value_of() {{
  local value="${{1#*=}}" head="" names
  [[ "$COMP_WORDBREAKS" == *=* ]] || head="${{1%%=*}}="
  [[ "$value" == *,* ]] && head="$head${{value%,*}},"
  names="$(_weft_values "${{1%%=*}}")"
  COMPREPLY=($(compgen -P "$head" -W "$names" -- "${{value##*,}}"))
}}
_weft_keys() {{
  COMPREPLY=($(compgen -W "{keys} $2" -- "$1"))
  [[ "${{COMPREPLY[*]}}" == *= ]] && type compopt >/dev/null 2>&1 && compopt -o nospace 2>/dev/null
  return 0
}}
_weft_run_words() {{
  if [[ "$2" == -* ]]; then
    COMPREPLY=($(compgen -W "$(_weft_options "$3") {flags}" -- "$2"))
  elif [[ "$2" == */* ]]; then
    _weft_files "$2"
  else
    _weft_keys "$2" "$(_weft_recipes "$1")"
  fi
}}
_weft_plain_words() {{
  case "$2:$3" in
    -*) COMPREPLY=($(compgen -W "$(_weft_options "$3")" -- "$2")) ;;
    *:recipes) COMPREPLY=($(compgen -W "$(_weft_recipes "$1")" -- "$2")) ;;
    *:verify|*:report|*:data\ *) _weft_files "$2" ;;
  esac
}}
_weft() {{
  local line="${{COMP_LINE:0:$COMP_POINT}}" command="${{COMP_WORDS[1]}}" token before names
  token="${{line##* }}"
  before="${{line% *}}"
  before="${{before##* }}"
  COMPREPLY=()
  if [[ "$COMP_CWORD" == 1 ]]; then
    COMPREPLY=($(compgen -W "{commands} --help --version" -- "$token"))
    return
  fi
  names="$(_weft_first "$command")"
  if [[ -n "$names" && "$COMP_CWORD" == 2 ]]; then
    COMPREPLY=($(compgen -W "$names --help" -- "$token"))
    return
  fi
  [[ -n "$names" ]] && command="$command ${{COMP_WORDS[2]}}"
  if [[ "$token" == *=* ]]; then
    _weft_value_of "$token"
    return
  fi
  case "$before" in
    {paths}) _weft_files "$token"; return ;;
    --vary) _weft_keys "$token" ""; return ;;
    -*) names="$(_weft_values "$before")" ;;
    *) names="" ;;
  esac
  if [[ -n "$names" ]]; then
    COMPREPLY=($(compgen -W "$names" -- "$token"))
    return
  fi
  case "$command" in
    {with_run}) _weft_run_words "$1" "$token" "$command" ;;
    *) _weft_plain_words "$1" "$token" "$command" ;;
  esac
}}
)sh";

std::string bash_table(const char* function, const Table& table) {
  std::string script = text("{}() {{\n  case \"$1\" in\n", function);
  for (const Choice& choice : table) {
    script += text("    \"{}\") echo \"{}\" ;;\n", choice.name, joined(choice.words));
  }
  return script + "  esac\n}\n";
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::string script = bash_table("_weft_values", choices());
  script += bash_table("_weft_first", first_words(commands));
  script += bash_table("_weft_options", own_options(commands));
  script += text("_weft_recipes() {{\n  \"$1\" {}\n}}\n", kRecipeNames);
  script +=
      fmt::format(fmt::runtime(kBash),
                  fmt::arg("commands", joined(names_of(commands))),
                  fmt::arg("flags", joined(flags())),
                  fmt::arg("keys", joined(keys())),
                  fmt::arg("paths", text("{}", fmt::join(kPaths, "|"))),
                  fmt::arg("with_run", text("\"{}\"", fmt::join(with_run(commands), "\"|\""))));
  return script + "complete -F _weft weft\n";
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  return "#compdef weft\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(commands);
}

std::string fish_table(const char* function, const Table& table) {
  std::string script = text("function {}\n  switch \"$argv[1]\"\n", function);
  for (const Choice& choice : table) {
    script += text("    case '{}'\n      printf '%s\\n' {}\n", choice.name, joined(choice.words));
  }
  return script + "  end\nend\n";
}

constexpr const char* kFish = R"sh(function __weft_recipes
  set -l program (commandline -opc)[1]
  $program {recipes}
end
function __weft_command
  set -l typed (commandline -opc)
  if test (count (__weft_first "$typed[2]")) -gt 0; and test (count $typed) -gt 2
    echo "$typed[2] $typed[3]"
  else
    echo "$typed[2]"
  end
end
function __weft_wants_path
  contains -- (commandline -opc)[-1] {paths}
end
function __weft_run_words
  if string match -q -- '-*' "$argv[1]"
    printf '%s\n' {flags}
  else
    printf '%s\n' {keys}
    __weft_recipes
  end
end
function __weft_words
  set -l token (commandline -ct)
  set -l typed (commandline -opc)
  set -l command (__weft_command)
  if string match -q -- '*=*' "$token"
    set -l key (string replace -r '=.*' '' -- $token)
    for value in (__weft_values $key)
      echo $key=$value
    end
    return
  end
  if test "$typed[-1]" = --vary
    printf '%s\n' {keys}
    return
  end
  if test (count $typed) -eq 2
    __weft_first $command
  end
  if string match -q -- '-*' "$typed[-1]"
    __weft_values $typed[-1]
  end
  __weft_options $command
  switch $command
    case {with_run}
      __weft_run_words "$token"
    case recipes
      __weft_recipes
  end
end
complete -c weft -f -n __fish_use_subcommand -a '{commands}'
complete -c weft -f -n 'not __fish_use_subcommand; and not __weft_wants_path' -a '(__weft_words)'
complete -c weft -F -n __weft_wants_path
)sh";

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string script = fish_table("__weft_values", choices());
  script += fish_table("__weft_first", first_words(commands));
  script += fish_table("__weft_options", own_options(commands));
  return script +
         fmt::format(fmt::runtime(kFish),
                     fmt::arg("commands", joined(names_of(commands))),
                     fmt::arg("flags", joined(flags())),
                     fmt::arg("keys", joined(keys())),
                     fmt::arg("paths", text("{}", fmt::join(kPaths, " "))),
                     fmt::arg("recipes", kRecipeNames),
                     fmt::arg("with_run", text("'{}'", fmt::join(with_run(commands), "' '"))));
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw base::ConfigError(text(
      "weft completion{}: for which shell? Write bash, zsh or fish, as in weft completion bash",
      shell.empty() ? "" : " " + config::shown(shell)));
}

}  // namespace weft::cli
