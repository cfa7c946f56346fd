/* Since glibc 2.38 its headers call strtol and its kin by a second name, for C23 knows 0b101 as a number. Here the second name is
 * the first again. No header is included: it would rename what is defined here. */
#define HIDDEN __attribute__((visibility("hidden")))
#define SAME(type, name)               \
  type name(const char*, char**, int); \
  HIDDEN type __isoc23_##name(const char* text, char** end, int base) { return name(text, end, base); }
#define SAME_WIDE(type, name)                              \
  type name(const __WCHAR_TYPE__*, __WCHAR_TYPE__**, int); \
  HIDDEN type __isoc23_##name(const __WCHAR_TYPE__* text, __WCHAR_TYPE__** end, int base) { return name(text, end, base); }

SAME(long, strtol)
SAME(unsigned long, strtoul)
SAME(long long, strtoll)
SAME(unsigned long long, strtoull)
SAME(__INTMAX_TYPE__, strtoimax)
SAME(__UINTMAX_TYPE__, strtoumax)
SAME_WIDE(long, wcstol)
SAME_WIDE(unsigned long, wcstoul)
SAME_WIDE(long long, wcstoll)
SAME_WIDE(unsigned long long, wcstoull)

/* SOURCE: the text or the FILE. */
#define SAME_SCAN(SOURCE, name)                                                            \
  int __isoc99_v##name(SOURCE, const char*, __builtin_va_list);                            \
  HIDDEN int __isoc23_v##name(SOURCE from, const char* format, __builtin_va_list values) { \
    return __isoc99_v##name(from, format, values);                                         \
  }                                                                                        \
  HIDDEN int __isoc23_##name(SOURCE from, const char* format, ...) {                       \
    __builtin_va_list values;                                                              \
    __builtin_va_start(values, format);                                                    \
    const int count = __isoc99_v##name(from, format, values);                              \
    __builtin_va_end(values);                                                              \
    return count;                                                                          \
  }

SAME_SCAN(const char*, sscanf)
SAME_SCAN(void*, fscanf)
