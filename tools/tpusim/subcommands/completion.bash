_tpusim() {
  local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"
  local options arguments words="" files="" option=""
  if [[ "$current" == "=" ]]; then
    current=""
  elif [[ "$before" == "=" ]]; then
    before="${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "${COMP_WORDS[1]}" in
{{CASES}}  esac
  if [[ -n "$words" ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    [[ "${COMPREPLY[0]-}" == *= ]] && option=nospace
    ((${#COMPREPLY[@]})) || files=yes
  elif [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{{COMMANDS}}" -- "$current")) files=yes
  else
    COMPREPLY=($(compgen -W "$arguments" -- "$current")) files=yes
  fi
  if [[ -n "$files" ]]; then
    COMPREPLY+=($(compgen -f -- "$current")) option=filenames
  fi
  if [[ -n "$option" ]] && type compopt &>/dev/null; then
    compopt -o "$option" 2>/dev/null
  fi
  return 0
}
if type compopt &>/dev/null; then
  complete -F _tpusim tpusim
else
  complete -o filenames -F _tpusim tpusim
fi
