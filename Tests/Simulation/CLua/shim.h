#pragma once
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stddef.h>

// Lua's interface is macros in part, which Swift does not see.

// A state with the libraries that a script of the server may use, and `redis.call`, which is `call` with `place` as its own.
static inline lua_State *simulation_lua_open(lua_CFunction call, void *place) {
    lua_State *state = luaL_newstate();
    if (state == NULL) return NULL;
    luaL_openlibs(state);
    lua_newtable(state);
    lua_pushlightuserdata(state, place);
    lua_pushcclosure(state, call, 1);
    lua_setfield(state, -2, "call");
    lua_setglobal(state, "redis");
    // Scripts that were compiled, by their text.
    lua_newtable(state);
    lua_setfield(state, LUA_REGISTRYINDEX, "scripts");
    return state;
}

// What `call` was opened with.
static inline void *simulation_lua_place(lua_State *state) { return lua_touserdata(state, lua_upvalueindex(1)); }

// Runs a script with KEYS and ARGV, which lie on the stack as two tables. 0: its value is on the stack; else the error's text.
static inline int simulation_lua_run(lua_State *state, const char *script, size_t length) {
    lua_setglobal(state, "ARGV");
    lua_setglobal(state, "KEYS");
    lua_getfield(state, LUA_REGISTRYINDEX, "scripts");
    lua_pushlstring(state, script, length);
    lua_rawget(state, -2);
    if (lua_isnil(state, -1)) {
        lua_pop(state, 1);
        if (luaL_loadbuffer(state, script, length, "script") != 0) return 1;
        lua_pushlstring(state, script, length);
        lua_pushvalue(state, -2);
        lua_rawset(state, -4);
    }
    lua_remove(state, -2);
    return lua_pcall(state, 0, 1, 0);
}

static inline const char *simulation_lua_text(lua_State *state, int index, size_t *length) { return lua_tolstring(state, index, length); }

static inline void simulation_lua_pop(lua_State *state, int count) { lua_settop(state, -count - 1); }

static inline void simulation_lua_table(lua_State *state) { lua_newtable(state); }
