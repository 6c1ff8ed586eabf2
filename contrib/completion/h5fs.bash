# Completion of h5fs for bash: options and their values (the mount options are those that `h5fs -h` tells), HDF5 files, folders.

# What an option's value may be.
_h5fs_values()
{
	case $1 in
	create) echo v18 ;;
	external) echo none beneath any ;;
	io_uring) echo no auto yes ;;
	locking) echo yes no best-effort ;;
	colours) echo grey heat helix ;;
	order) echo name creation ;;
	sandbox) echo yes no ;;
	sync) echo close fsync ;;
	xattr) echo text raw ;;
	zarr_chunks) echo stored decoded ;;
	esac
}

# The last one of a list with commas.
_h5fs_mount_options()
{
	local before= last=$1 name path
	if [[ $last == *,* ]]; then
		before=${last%,*},
		last=${last##*,}
	fi
	case $last in
	disk_cache=* | journal=* | log=*)
		compopt -o filenames 2>/dev/null
		# Readline quotes what it is given; what was typed is quoted already.
		path=${last#*=} path=${path//\\/} before+=${last%%=*}=
		if [[ $last == log=* ]]; then
			mapfile -t COMPREPLY < <(compgen -P "$before" -W syslog -- "$path"; compgen -P "$before" -f -- "$path")
		else
			mapfile -t COMPREPLY < <(compgen -P "$before" -d -- "$path")
		fi
		;;
	*=*) COMPREPLY=($(compgen -P "$before${last%%=*}=" -W "$(_h5fs_values "${last%%=*}")" -- "${last#*=}")) ;;
	*)
		name=$("${COMP_WORDS[0]}" -h 2>/dev/null | sed -n 's/^    \([a-z][a-z0-9_-]*\)\(=\{0,1\}\).*/\1\2/p')
		COMPREPLY=($(compgen -P "$before" -W "$name" -- "$last"))
		[[ ${COMPREPLY[*]-} != *= ]] || compopt -o nospace 2>/dev/null
		;;
	esac
}

_h5fs()
{
	local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} i list
	COMPREPLY=()
	if [[ $line =~ [[:space:]]-o[[:space:]]*((\\.|[^\\[:space:]])*)$ ]]; then
		list=${BASH_REMATCH[1]}
		_h5fs_mount_options "$list"
		# Bash has broken the word at each =, and replaces what comes after the last one.
		if [[ $list == *=* && $COMP_WORDBREAKS == *=* ]]; then
			for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"${list%=*}="}; done
		fi
	elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == -u ]]; then
		compopt -o filenames 2>/dev/null
		local IFS=$'\n'
		COMPREPLY=($(compgen -d -- "$current"))
	elif [[ $current == -* ]]; then
		COMPREPLY=($(compgen -W "-d -f -h -o -q -s -u -V --cat --check --extract --help --json --kerchunk --list --reclaim --recover --version" -- "$current"))
	else
		compopt -o filenames 2>/dev/null
		local IFS=$'\n'
		COMPREPLY=($(compgen -f -X '!*.@(h5|hdf5|hdf|he5|mat|nc|nc4|nx5|nxs)' -- "$current") $(compgen -d -- "$current"))
	fi
}
complete -F _h5fs h5fs
